/**
 * Plans as text for people.
 *
 * <p>{@link PlanReport} holds what there is to say about a plan, once, as rows with facts; every
 * format is a renderer of it, and {@link PlanDiff}, {@link PlanExplainer} and {@link PeakReport}
 * give rows, too. That is why the package has more than thirty classes: a section or a renderer is
 * a class.
 *
 * <p>The assets of the page are resources beside {@link HtmlRenderer}: {@code data.js} reads the
 * report, {@code map.js} lays a plan out, {@code paint.js} and {@code marks.js} draw it on two
 * canvases, {@code panels.js} has what stands beside, and {@code main.js} the state. Maven unpacks
 * D3 to them.
 */
@NullMarked
package dev.symplan.planner.report;

import org.jspecify.annotations.NullMarked;
