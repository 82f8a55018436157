#!/bin/sh
# A shell must be able to read the file, and the file must hold nothing else.
cd /app || exit 1
reward=0
file=meta/version.env
if [ -f "$file" ] && [ "$(grep -c . "$file")" -eq 2 ] && ! grep -q "[ \"']" "$file"; then
    VERSION='' CHANNEL=''
    while IFS='=' read -r key value; do
        case "$key" in
        VERSION) VERSION=$value ;;
        CHANNEL) CHANNEL=$value ;;
        esac
    done < "$file"
    [ "$VERSION/$CHANNEL" = 0.1.0/preview ] && reward=1
fi
mkdir -p /logs/verifier
echo "$reward" > /logs/verifier/reward.txt
[ "$reward" -eq 1 ]
