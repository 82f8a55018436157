#!/bin/sh
set -eu
cd /app
printf '%s\n' 'Good morning.' 'The kettle is on.' > greeting.txt
