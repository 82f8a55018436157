#!/bin/sh
# The three lines, nothing else.
cd /app || exit 1
reward=0
expected='The first build is out.
It does little, and it does it twice.
Tell us what broke.'
if [ -f announcement.txt ] && [ "$(cat announcement.txt)" = "$expected" ]; then
    reward=1
fi
mkdir -p /logs/verifier
echo "$reward" > /logs/verifier/reward.txt
[ "$reward" -eq 1 ]
