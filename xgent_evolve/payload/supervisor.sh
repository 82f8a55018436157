#!/bin/sh
# Runs one command inside a container and leaves an exit record; POSIX sh, no other interpreter.
#
# /xgent/plan.sh sets:
#   limit_s        wall time of the command, in seconds
#   output_limit   bytes of stdout and of stderr that are kept
#   credential_to  file that receives the credential from /xgent/secret/credential, or empty
#   stdin_from     file that becomes the command's standard input
# and defines two functions: prepare (before the command) and collect (after it).
# /xgent/command.sh is the command. /xgent/identity says which execution and container this is.
#
# In /xgent/ctl it leaves: token (taken before the command; a second start finds it and exits
# 87), stdout, stderr, whatever collect adds, and last of all record.

ctl=/xgent/ctl
umask 022

if ! (set -C && : >"$ctl/token") 2>/dev/null; then
    exit 87
fi
sync "$ctl/token" 2>/dev/null

. /xgent/plan.sh

now_cs() { # hundredths of a second on a clock that nobody sets
    IFS=' .' read -r now_s now_f _ </proc/uptime
    now_f=${now_f#0}
    echo $((now_s * 100 + ${now_f:-0}))
}

finish() { # status exit_code
    identity=$(cat /xgent/identity)
    printf '%s,"status":"%s","exit_code":%s,"expired":%s,"started_cs":%s,"ended_cs":%s}\n' \
        "${identity%\}}" "$1" "$2" "$expired" "${started:-null}" "${ended:-null}" \
        >"$ctl/.record"
    sync "$ctl/.record" 2>/dev/null
    mv "$ctl/.record" "$ctl/record"
    sync "$ctl" 2>/dev/null
    exit 0
}

alarm() { # seconds: interrupts the next wait of this shell
    (
        sleep "$1"
        kill -USR1 $$ 2>/dev/null
    ) >/dev/null 2>&1 &
}

capture() { # pipe file: keeps the first bytes and drains the rest, so that nobody blocks
    {
        head -c "$output_limit" >"$2"
        dropped=$(wc -c)
        [ "$dropped" -gt 0 ] && echo "$dropped" >"$2.dropped"
    } <"$1" &
}

expired=false
rang=
trap 'rang=1' USR1

if [ -n "$credential_to" ]; then
    (umask 077 && mkdir -p "${credential_to%/*}" && cat /xgent/secret/credential >"$credential_to") &
    reader=$!
    alarm 60
    wait "$reader"
    status=$?
    if [ -n "$rang" ] || [ "$status" -ne 0 ]; then
        finish no_credential null
    fi
    kill -KILL $! 2>/dev/null
fi

if ! prepare >"$ctl/prepare" 2>&1; then
    finish prepare_failed null
fi

mkfifo "$ctl/.out" "$ctl/.err"
capture "$ctl/.out" "$ctl/stdout"
out=$!
capture "$ctl/.err" "$ctl/stderr"
err=$!

started=$(now_cs)
sh /xgent/command.sh <"$stdin_from" >"$ctl/.out" 2>"$ctl/.err" &
child=$!
rang=
alarm "$limit_s"
wait "$child"
code=$?
if [ -n "$rang" ]; then
    expired=true
    kill -TERM "$child" 2>/dev/null
    rang=
    alarm 2
    wait "$child"
    code=$?
fi
ended=$(now_cs)

# What the command left behind gets a moment to end its output, then everything is stopped, so
# that the file system is quiet when it is read.
rang=
alarm 2
while [ -z "$rang" ] && { kill -0 "$out" 2>/dev/null || kill -0 "$err" 2>/dev/null; }; do
    wait "$out"
    wait "$err"
done
kill -KILL -1 2>/dev/null
rm -f "$ctl/.out" "$ctl/.err"

collect >"$ctl/collect" 2>&1
finish ended "$code"
