/** Random programs, planned and run, compared with direct evaluation. */
@NullMarked
package dev.symplan.runtime.fuzz;

import org.jspecify.annotations.NullMarked;
