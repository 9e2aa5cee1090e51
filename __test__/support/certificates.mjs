// A private certificate authority, made anew by each test that wants one: no key lies in the repository, and none expires there.
// X.509 (RFC 5280) as far as a TLS server of a test needs it, in DER.

import { createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto'

/** An authority: `certificate` and `key` are its own, as PEM, and `issue` gives `{ key, cert }` for names and addresses of a server. */
export function authority(name = 'Private authority of the tests') {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const subject = commonName(name)
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    certificate: certificate({
      issuer: subject,
      subject,
      key: privateKey,
      signer: privateKey,
      // A certificate that may sign others, and itself says so.
      extensions: [
        extension('basicConstraints', sequence(BOOLEAN_TRUE), true),
        extension('keyUsage', der(3, Buffer.of(1, 0x06)), true),
      ],
    }),
    issue(...hosts) {
      const { privateKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const cert = certificate({
        issuer: subject,
        subject: commonName(hosts[0]),
        key,
        signer: privateKey,
        extensions: [extension('subjectAltName', sequence(...hosts.map(generalName)))],
      })
      return { key: key.export({ type: 'pkcs8', format: 'pem' }), cert }
    },
  }
}

const OIDS = {
  commonName: [0x55, 0x04, 0x03],
  keyUsage: [0x55, 0x1d, 0x0f],
  subjectAltName: [0x55, 0x1d, 0x11],
  basicConstraints: [0x55, 0x1d, 0x13],
  ecdsaWithSha256: [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02],
}

const BOOLEAN_TRUE = der(1, Buffer.of(0xff))
const DAY = 86_400_000

function certificate({ issuer, subject, key, signer, extensions }) {
  const algorithm = sequence(oid('ecdsaWithSha256'))
  const publicKey = createPublicKey(key).export({ type: 'spki', format: 'der' })
  // The first byte below 0x80: a serial number is positive.
  const serial = der(2, Buffer.concat([Buffer.of(0x40), randomBytes(8)]))
  const validity = sequence(time(Date.now() - DAY), time(Date.now() + DAY))
  const version = der(0xa0, der(2, Buffer.of(2)))
  const signed = sequence(
    version,
    serial,
    algorithm,
    issuer,
    validity,
    subject,
    publicKey,
    der(0xa3, sequence(...extensions)),
  )
  const signature = der(3, Buffer.concat([Buffer.of(0), sign('sha256', signed, signer)]))
  const text = sequence(signed, algorithm, signature).toString('base64')
  return `-----BEGIN CERTIFICATE-----\n${text.match(/.{1,64}/g).join('\n')}\n-----END CERTIFICATE-----\n`
}

function extension(name, value, critical = false) {
  return sequence(oid(name), ...(critical ? [BOOLEAN_TRUE] : []), der(4, value))
}

function commonName(text) {
  return sequence(der(0x31, sequence(oid('commonName'), der(0x0c, Buffer.from(text)))))
}

function generalName(host) {
  const address = /^\d+(\.\d+){3}$/.test(host)
  return address ? der(0x87, Buffer.from(host.split('.').map(Number))) : der(0x82, Buffer.from(host))
}

/** As UTCTime, which is what years before 2050 have to have. */
function time(at) {
  const [date] = new Date(at).toISOString().slice(2).replace(/[-:T]/g, '').split('.')
  return der(0x17, Buffer.from(`${date}Z`))
}

function oid(name) {
  return der(6, Buffer.from(OIDS[name]))
}

function sequence(...parts) {
  return der(0x30, Buffer.concat(parts))
}

/** Tag, length, value. */
function der(tag, value) {
  const { length } = value
  if (length < 0x80) return Buffer.concat([Buffer.of(tag, length), value])
  const bytes = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.of(tag, ...bytes), value])
}
