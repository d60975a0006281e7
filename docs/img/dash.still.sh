# Several sessions side by side. They have a folder of their own, so that the dashboard, which is
# recorded, does not show itself.
echo "export XDG_RUNTIME_DIR=$PWD/others" >> .bashrc
XDG_RUNTIME_DIR=$PWD/others
tapdeck run -d --name claude -- claude > /dev/null
tapdeck run -d --name build -- bash -c 'for i in $(seq 40 63); do echo "[$i/120] Compiling part-$i"; done; read' > /dev/null
tapdeck run -d --name notes -- less /etc/services > /dev/null
tapdeck run -d --name shell -- bash > /dev/null
tapdeck wait claude --state idle
tapdeck type shell 'git --version | cut -c1-11; date +%Y' --enter
XDG_RUNTIME_DIR=$PWD/run
stage 110x30
say 'exec tapdeck dash'
tapdeck wait stage --text 'Claude Code'
tapdeck wait stage --text 'Compiling'
tapdeck wait stage --idle 700
curtain 0
