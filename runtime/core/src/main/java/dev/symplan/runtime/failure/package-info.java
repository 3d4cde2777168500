/** Failures of runs: the exception that callers get, and the messages between processes. */
@NullMarked
package dev.symplan.runtime.failure;

import org.jspecify.annotations.NullMarked;
