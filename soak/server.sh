#!/bin/sh
# `server.sh [FAULT]`: a server over stdio that starts within milliseconds, so that thousands of starts take minutes. It reads what it
# has to know, answers under the id it was asked with, and leaves with the end of its input, unless FAULT says otherwise.
fault=$1

if [ "$fault" = ignores-term ]; then trap '' TERM; fi

answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$1,$2}"; }

while IFS= read -r line; do
  id=${line#*'"id":'} id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      case $fault in leaves-handshake) exit 3 ;; silent) continue ;; starts-slowly) sleep 0.03 ;; esac
      answer "$id" '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"soak","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      case $fault in
        leaves-listing) exit 4 ;;
        refuses-listing) answer "$id" '"error":{"code":-32603,"message":"no list today"}' ;;
        *) answer "$id" '"result":{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}' ;;
      esac ;;
    *'"method":"tools/call"'*)
      case $fault in leaves-call) exit 5 ;; hangs-call) continue ;; esac
      answer "$id" '"result":{"content":[{"type":"text","text":"hello"}]}' ;;
    *'"method":"ping"'*) answer "$id" '"result":{}' ;;
  esac
done

# A minute at most, should nobody end them.
case $fault in ignores-end | ignores-term) exec sleep 60 ;; esac
