/** Reports as text, JSON, CSV, and for Graphviz, Model Explorer and Perfetto: a class for each. */
@NullMarked
package dev.symplan.planner.report.render;

import org.jspecify.annotations.NullMarked;
