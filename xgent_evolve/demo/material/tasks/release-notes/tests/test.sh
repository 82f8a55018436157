#!/bin/sh
# The notes of what is not released: the names of the columns, then the one change.
cd /app || exit 1
reward=0
expected='area | change | who notices
build | first build | everyone'
if [ -f notes/next.txt ] && [ "$(cat notes/next.txt)" = "$expected" ]; then
    reward=1
fi
mkdir -p /logs/verifier
echo "$reward" > /logs/verifier/reward.txt
[ "$reward" -eq 1 ]
