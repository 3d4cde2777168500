/** The times of each step of a run, as a table and as a trace. */
@NullMarked
package dev.symplan.runtime.profile;

import org.jspecify.annotations.NullMarked;
