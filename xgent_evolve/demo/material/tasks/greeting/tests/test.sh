#!/bin/sh
# The two lines, nothing else.
cd /app || exit 1
reward=0
expected='Good morning.
The kettle is on.'
if [ -f greeting.txt ] && [ "$(cat greeting.txt)" = "$expected" ]; then
    reward=1
fi
mkdir -p /logs/verifier
echo "$reward" > /logs/verifier/reward.txt
[ "$reward" -eq 1 ]
