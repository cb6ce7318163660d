#!/usr/bin/env bash
# Somebody else was first to make the folders that records go to: the watchdog still sees who does not come, and ronda_trace is named
# the folder that was taken instead.
source "$(dirname "$0")/lib.sh"
stall=$(cd "${2:?usage: $0 APPS COLLECTIVES}" && pwd)/stall_program
name=ronda-$(id -u)
export TMPDIR=$work/tmp

squat() { # squat PLACE: makes it somebody else's; others can write to it, which is as bad
  [[ ! -e $1/$name ]] || mv "$1/$name" "$1/$name-kept"
  mkdir -p "$1/$name"
  chmod 777 "$1/$name"
  ((EUID != 0)) || chown 65534 "$1/$name"
}
give_back() {
  rm -rf "$1/$name"
  [[ ! -e $1/$name-kept ]] || mv "$1/$name-kept" "$1/$name"
}
places=(/dev/shm /tmp "$TMPDIR")
mkdir "$TMPDIR"
folders() { ls -d /dev/shm/"$name".?????? /tmp/"$name".?????? 2>/dev/null; }
before=$(folders)
for place in "${places[@]}"; do squat "$place"; done

for how in late start; do
  what="$how, while others have the folders"
  run mpirun -n 3 "$stall" $how
  ((status != 0)) || fail 'exit status 0'
  expect_message "has stood still for .* waiting for rank 2.*ronda_trace /dev/shm/$name\\.[A-Za-z0-9]{6}/"
  records=$(grep -aoE "/dev/shm/$name\\.[A-Za-z0-9]{6}/[^ ]+" "$work/err" | head -1)
  folder=$(dirname "$records")
  expect 'a folder that nobody else can look into' test "$(stat -c '%u %a' "$folder")" == "$(id -u) 700"
  job=$(basename "$records") # jobs of tests beside this one have folders too
  expect 'one folder for all' test "$(ls -d {/dev/shm,/tmp}/"$name".??????/"$job" 2>/dev/null | wc -l)" == 1
done

for place in "${places[@]}"; do give_back "$place"; done
comm -13 <(echo "$before") <(folders) | while read -r folder; do rm -rf "$folder"; done
