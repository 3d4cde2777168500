/** Plans as text for people. */
@NullMarked
package dev.symplan.planner.report;

import org.jspecify.annotations.NullMarked;
