#!/usr/bin/env bash
# ronda_run starts what has died again, with the hosts that are there, and knows when not to. The launcher is a stand-in, which
# writes down what it was given; its n-th start ends as the n-th word of its plan says.
source "$(dirname "$0")/lib.sh"
limit=60

cat >"$work/launcher" <<'END'
#!/usr/bin/env bash
# launcher FOLDER 'ENDING…' -n RANKS --host HOSTS PROGRAM ARGUMENT…
folder=$1 plan=($2)
shift 2
[[ ${*: -1} != true ]] || exit 0 # whether it starts anything
echo "$*" >>"$folder/starts"
starts=$(wc -l <"$folder/starts")
case ${plan[$((starts - 1))]:-0} in
  checkpoint) mkdir "$folder/checkpoints/step-$starts"; sleep 0.01; touch "$folder/checkpoints/log"; exit 1 ;;
  log) touch "$folder/checkpoints/log-$starts"; exit 1 ;;
  killed) kill -KILL $$ ;;
  wait) trap 'exit 75' USR1; trap 'exit 143' TERM; touch "$folder/waiting"; while :; do sleep 0.1; done ;;
  starting) trap 'trap "exit 75" USR1' USR1; touch "$folder/waiting"; while :; do sleep 0.1; done ;; # drops the first signal
  unready) touch "$folder/waiting"; while :; do sleep 0.1; done ;; # has no handler yet
  saved) trap 'mkdir "$folder/checkpoints/step-1"' USR1; trap 'exit 143' TERM; touch "$folder/waiting"; while :; do sleep 0.1; done ;;
  deaf) trap '' USR1 TERM; touch "$folder/waiting"; while :; do sleep 0.1; done ;;
  nowhere) printf 'mpirun was unable to find the specified executable file, and therefore\n' >&2; exit 134 ;;
  stays) echo 'ronda: error: a rank is lost' >&2; trap 'exit 143' TERM; while :; do sleep 0.1; done ;;
  *) exit "${plan[$((starts - 1))]:-0}" ;;
esac
END
# agent FOLDER HOST COMMAND: a host answers unless FOLDER/gone.HOST is there.
printf '#!/bin/sh\n[ ! -e "$1/gone.$2" ]\n' >"$work/agent"
chmod +x "$work/launcher" "$work/agent"
mkdir "$work/bin"
printf '#!/bin/sh\n' >"$work/bin/train"
chmod +x "$work/bin/train"
touch "$work/agent.txt"
echo data >"$work/data.gz"
export PATH=$work/bin:$PATH
cores=$(for cpu in $(taskset -cp $$ | sed 's/.*: //' | tr , '\n' | sed 's/-/ /' | while read -r a b; do seq "$a" "${b:-$a}"; done); do
  cat "/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list"; done | sort -u | wc -l)

number=0
prepare() { # prepare 'ENDING…' OPTION…: a job in $folder, in the words $job
  folder=$work/job$((++number))
  mkdir -p "$folder/checkpoints"
  printf '#!/bin/sh\nexec "%s" "%s" "%s" "$@"\n' "$work/launcher" "$folder" "$1" >"$folder/launch"
  chmod +x "$folder/launch"
  job=("$apps/ronda_run" --launcher "$folder/launch" --agent "$work/agent $folder" --backoff 0.05 --look-every 0.2
    --json "$folder/report.json" "${@:2}" train --checkpoint-dir "$folder/checkpoints")
}
supervise() { # supervise STATUS STARTS 'ENDING…' OPTION…
  local status_expected=$1 starts=$2
  shift 2
  prepare "$@"
  what="ronda_run ${*:2}, endings $1"
  run "${job[@]}"
  expect_status "$status_expected"
  expect "$starts starts" test "$(cat "$folder/starts" 2>/dev/null | wc -l)" -eq "$starts"
}
start() { sed -n "$1p" "$folder/starts"; } # start N: what the launcher was given
after() { # after FILE: waits for it
  for ((i = 0; i < 200; ++i)); do
    [[ ! -e $1 ]] || return 0
    sleep 0.05
  done
  fail "$1 never came"
}

# mpirun's agent where none is given: of alternatives the first.
prepare 0 --hosts node7:1 --wait-for-hosts 2
job=("${job[@]:0:3}" "${job[@]:5}")
run env OMPI_MCA_plm_rsh_agent="$work/agent $folder : rsh" "${job[@]}"
expect_status 0
expect 'a start there' grep -q '^-n 1 --host node7:1 train' "$folder/starts"

supervise 0 1 '0'
expect 'the program resumes, on as many ranks as mpirun takes' test "$(start 1)" = "-n $cores --host localhost:$cores train --checkpoint-dir $folder/checkpoints --resume"
supervise 0 3 '1 killed 0' -n 4
expect 'four ranks' grep -q '^-n 4 --host localhost:4 train' "$folder/starts"
expect 'both failures in the report' grep -q '"failures": 2' "$folder/report.json"
expect 'the signal told' grep -q 'by signal 9' "$work/err"
supervise 0 2 '139 0'
expect "the launcher's status told" grep -q 'with status 139, as where signal 11 has ended a rank' "$work/err"

# What cannot start is refused: here before the launcher is, elsewhere by what the launcher says; but for one that has been there before.
supervise 2 1 '127 0'
expect 'why told' grep -q 'train cannot be started on localhost' "$work/err"
supervise 2 1 'nowhere 0'
expect 'why told' grep -q 'train cannot be started on localhost' "$work/err"
supervise 0 3 '1 127 0'
supervise 2 1 '2'
supervise 75 1 '75'
supervise 1 4 '1 1 1 1 1 1' --max-failures 3
expect 'why it gave up' grep -q 'gives up: 4 failures in a row without a new checkpoint' "$work/err"
supervise 1 2 'log log log' --max-failures 1 --quiet # other files are none
expect 'the error' grep -q '^ronda: error: ronda_run gives up: 2 failures in a row' "$work/err"
supervise 0 7 'checkpoint 1 1 checkpoint 1 1 0' --max-failures 3 # checkpoints are progress

# The global batch stays what it would be on all hosts.
prepare '1 0' --hosts 'a:2,b:2'
touch "$folder/gone.b"
what='a host less'
run "${job[@]}" --batch-size 32
expect_status 0
expect 'two ranks on a' grep -q '^-n 2 --host a:2 train.*--global-batch-size=128' "$folder/starts"
expect 'the missing host told' grep -q 'starts 2 ranks on a; without b, which did not answer' "$work/err"

prepare '0' --hosts 'a:2,b:2' --min-ranks 3 --wait-for-hosts 0.1
touch "$folder/gone.b"
what='too few hosts'
run "${job[@]}"
expect_status 1
expect 'no start' test ! -e "$folder/starts"

# A launcher that stays when its job has failed, as mpirun does for a host that neither answers nor is gone, is ended.
supervise 0 2 'stays 0' --grace 1
expect 'what the job said' grep -q '^ronda: error: a rank is lost' "$work/err"
expect 'the word of it' grep -q 'has failed, but its launcher does not leave: ends the job' "$work/err"

# A host that is back is let in: the job saves, and goes on on both.
prepare 'wait 0' --hosts 'a:2,b:2'
touch "$folder/gone.b"
what='a host that returns'
(after "$folder/waiting"; rm "$folder/gone.b") &
run "${job[@]}"
expect_status 0
expect 'two ranks, then four' test "$(cut -d' ' -f2 "$folder/starts" | tr '\n' ' ')" = '2 4 '
expect 'no failure' grep -q '"failures": 0' "$folder/report.json"

# A host in use that is silent ends the job, where mpirun has not noticed.
prepare 'wait 0' --hosts 'a:2,b:2'
what='a silent host'
(after "$folder/waiting"; touch "$folder/gone.b") &
run "${job[@]}"
expect_status 0
expect 'four ranks, then two' test "$(cut -d' ' -f2 "$folder/starts" | tr '\n' ' ')" = '4 2 '

# Asked to stop it passes that on; asked twice it does not wait; a job that does not hear is killed.
stop() { # stop STATUS ENDING SIGNAL…
  local expected=$1 ending=$2 signal
  shift 2
  prepare "$ending" --grace 10
  what="ronda_run, endings $ending, sent $*"
  (
    after "$folder/waiting"
    for signal; do
      pkill "-$signal" -f "^$apps/ronda_run.*$folder"
      sleep 0.3
    done
  ) &
  run env --default-signal=INT "${job[@]}" # which the background of a script ignores
  expect_status "$expected"
  expect 'one start' test "$(wc -l <"$folder/starts")" -eq 1
}
stop 75 wait TERM
stop 75 wait USR1
stop 75 starting TERM
stop 75 unready TERM
stop 75 saved TERM TERM
stop 1 deaf INT INT
prepare '0' --hosts 'a:2,b:2' --min-ranks 3
touch "$folder/gone.b"
what='asked to stop while it waits for hosts'
(sleep 0.5; pkill -TERM -f "^$apps/ronda_run.*$folder") &
run "${job[@]}"
expect_status 75
expect 'no start' test ! -e "$folder/starts"

# What the program reads from a file counts as what it is given.
prepare 'checkpoint checkpoint 0' --max-failures 1
printf 'checkpoint-dir = "%s"\n' "$folder/checkpoints" >"$folder/train.toml"
job=("${job[@]:0:${#job[@]}-2}" --config "$folder/train.toml")
what='a program with a --config file'
run "${job[@]}"
expect_status 0 # two failures, with a checkpoint before each: never two in a row
expect 'the program as it was given, and to resume' test "$(start 1)" = "-n $cores --host localhost:$cores train --config $folder/train.toml --resume"

# A file with a comment and a byte order mark, as the program reads it; the report of a run before is replaced.
prepare 'checkpoint checkpoint 0' --max-failures 1
printf '\xef\xbb\xbfcheckpoint-dir = "%s" # the big disk\r\n' "$folder/checkpoints" >"$folder/train.toml"
job=("${job[@]:0:${#job[@]}-2}" --config "$folder/train.toml")
echo '{"starts": 1, "failures": 0, "happenings": []}' >"$folder/report.json"
what='a --config file of another editor'
run "${job[@]}"
expect_status 0
expect 'the new report' grep -q '"failures": 2' "$folder/report.json"

# The records of a start that failed stay.
prepare '1 1 0'
what='a program with --trace'
run "${job[@]}" --trace "$folder/records/" --quiet
expect_status 0
expect 'the folder as given' test "$(start 1 | grep -c -- "--trace $folder/records/ --quiet --resume$")" -eq 1
expect 'a folder for each restart' test "$(grep -c -- "--quiet --resume --trace=$folder/records-start-[23]$" "$folder/starts")" -eq 2

# The training is done, and only the report is missing.
prepare 0
mkdir "$folder/reports"
job=("${job[@]/report.json/reports/report.json}")
sed -i "2i rm -r '$folder/reports'" "$folder/launch"
what='a report that cannot be written at the end'
run "${job[@]}"
expect_status 1
expect_message 'reports/report.json'

# What says itself how a training resumes is given nothing more.
prepare 0
what='a program that may start anew'
run "${job[@]}" --resume-or-restart
expect_status 0
expect 'no other option' test "$(start 1 | grep -c -- '--resume ')$(start 1 | grep -c -- '--resume$')" = 00

# A launcher that starts nothing is not retried.
for launcher in false 'mpirun --no-such-option'; do
  prepare 0
  what="the launcher $launcher"
  job[2]=$launcher
  run "${job[@]}"
  expect_status 2
  expect 'the remedy' grep -q "starts no program at all .*this works: $launcher -n 1 --host localhost:$cores true" "$work/err"
  expect 'one start' grep -q '"starts": 1' "$folder/report.json"
done

# Under mpirun each copy would start a job of its own.
mpi 2 "$apps/ronda_run" train --checkpoint-dir "$work"
expect_status 2
expect_message 'started 2 times'

refused_alone() { # refused_alone REGEX OPTION…: it is not started by mpirun
  mpi 1 "$apps/ronda_run" "${@:2}"
  expect_status 2
  expect_message "$1"
}
refused_alone 'checkpoint-dir' train
echo 'batch-size = 8' >"$work/a_rank.toml"
refused_alone 'global-batch-size' train --checkpoint-dir "$work" --config "$work/a_rank.toml"
refused_alone 'checkpoint-dir' train --config "$work/a_rank.toml"
refused_alone 'none.toml' train --checkpoint-dir "$work" --config "$work/none.toml"
refused_alone 'expected a program' -n 2
# What it rewrites it understands as the program does.
refused_alone 'batch-size -5: expected a whole number' train --checkpoint-dir "$work" --batch-size -5
refused_alone 'batch-size 0x10: expected a whole number' train --checkpoint-dir "$work" --batch-size=0x10
refused_alone 'batch-size 9223372036854775807 is too large for 2 ranks' -n 2 train --checkpoint-dir "$work" --batch-size 9223372036854775807
refused_alone 'batch-size is given more than once' train --checkpoint-dir "$work" --batch-size 2 --batch-size 3
refused_alone 'both --batch-size and --global-batch-size' train --checkpoint-dir "$work" --batch-size 2 --global-batch-size 3
echo 'global-batch-size = 8' >"$work/all.toml"
refused_alone 'both --batch-size and --global-batch-size' train --checkpoint-dir "$work" --batch-size 2 --config "$work/all.toml"
echo '--batch-size = 8' >"$work/dashes.toml"
refused_alone 'global-batch-size there' train --checkpoint-dir "$work" --config "$work/dashes.toml"
refused_alone 'no regular file, and every start' train --checkpoint-dir "$work" --config /dev/stdin
refused_alone 'no regular file, and every start' train --checkpoint-dir "$work" --config "$work/bin"
refused_alone 'resume=false: a restart would begin anew' train --checkpoint-dir "$work" --resume=false
# What it gives the launcher itself, and what would part its folder from the job's.
refused_alone 'launcher has -n: give the number of ranks as ronda_run -n' --launcher 'taskset -c 0 mpirun -n 4' train --checkpoint-dir "$work"
refused_alone 'launcher has -np: ' --launcher 'mpirun -np 4' train --checkpoint-dir "$work"
refused_alone 'launcher has --host: give hosts as ronda_run --hosts' --launcher 'mpirun --host a' train --checkpoint-dir "$work"
refused_alone 'launcher has --wdir: .*cd there' --launcher 'mpirun --wdir /' train --checkpoint-dir "$work"
# Its report replaces no file but an earlier one.
refused_alone 'no report of ronda_run' --json "$work/data.gz" train --checkpoint-dir "$work"
expect 'the file as it was' test "$(cat "$work/data.gz")" = data
refused_alone 'leave that out' -n 2 mpirun -n 2 train --checkpoint-dir "$work"
refused_alone 'no-such-option' --no-such-option
refused_alone 'no option --max-failure; did you mean --max-failures' --max-failure 3 train
refused_alone "cannot start $work/nothere: it does not exist" "$work/nothere" --checkpoint-dir "$work"
refused_alone "cannot start $work/agent.txt: it is not executable" "$work/agent.txt" --checkpoint-dir "$work"
refused_alone "cannot start $work/bin: it is no file" "$work/bin" --checkpoint-dir "$work"
refused_alone 'cannot start nothere: no folder of PATH has it' nothere --checkpoint-dir "$work"
refused_alone 'resume-from' train --checkpoint-dir "$work" --resume-from "$work/step-1"
refused_alone "$work/none/report" --json "$work/none/report" train --checkpoint-dir "$work"
refused_alone 'slots' --hosts a:1 -n 2 train --checkpoint-dir "$work"
refused_alone 'min-ranks' -n 2 --min-ranks 3 train --checkpoint-dir "$work"
refused_alone "$work/none" --hostfile "$work/none" train --checkpoint-dir "$work"
refused_alone 'no-such-launcher' --launcher no-such-launcher train --checkpoint-dir "$work"
printf 'a slots=1\n-oProxyCommand=touch${IFS}%s/owned slots=1\n' "$work" >"$work/hostile"
refused_alone 'hostile, line 2.*is no name of a host' --hostfile "$work/hostile" --wait-for-hosts 1 train --checkpoint-dir "$work"
expect 'no command run by a name' test ! -e "$work/owned"
refused_alone 'slots in all' --hosts "$(for ((i = 0; i < 2048; ++i)); do printf 'h%d:1048576,' "$i"; done)last" train --checkpoint-dir "$work"
