#!/bin/sh
# The script runs, and its second line is the header.
cd /app || exit 1
reward=0
file=bin/hello
if [ -x "$file" ] && [ "$(./$file)" = hello ]; then
    header='# SPDX-License-Identifier: Apache-2.0 [the house]'
    [ "$(sed -n 2p "$file")" = "$header" ] && reward=1
fi
mkdir -p /logs/verifier
echo "$reward" > /logs/verifier/reward.txt
[ "$reward" -eq 1 ]
