#!/bin/sh
# Runs the conformance driver; `make -C clients/java build` compiles it.
here=$(dirname "$0")
exec java -XX:TieredStopAtLevel=1 -cp "$here/target/classes:$here/target/test-classes:$(cat "$here/target/classpath")" \
    dev.taskyard.conformance.Driver
