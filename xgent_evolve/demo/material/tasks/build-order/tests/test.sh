#!/bin/sh
# The three names, one a line, in this order.
cd /app || exit 1
reward=0
expected='core
client
installer'
if [ -f build-order.txt ] && [ "$(cat build-order.txt)" = "$expected" ]; then
    reward=1
fi
mkdir -p /logs/verifier
echo "$reward" > /logs/verifier/reward.txt
[ "$reward" -eq 1 ]
