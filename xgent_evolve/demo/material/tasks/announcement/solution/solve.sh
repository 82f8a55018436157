#!/bin/sh
set -eu
cd /app
printf '%s\n' 'The first build is out.' 'It does little, and it does it twice.' \
    'Tell us what broke.' > announcement.txt
