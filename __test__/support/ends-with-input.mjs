// Preloaded into a server that does not heed its input: it leaves when whoever started it is gone.

process.stdin.on('end', () => process.exit()).resume()
