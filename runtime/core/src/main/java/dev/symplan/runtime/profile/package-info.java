/** When each step of a run ran, as a table and as a trace. */
@NullMarked
package dev.symplan.runtime.profile;

import org.jspecify.annotations.NullMarked;
