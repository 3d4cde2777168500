/**
 * Reports as a page for browsers.
 *
 * <p>The assets are resources beside {@link HtmlRenderer}: {@code data.js} reads the report, {@code
 * map.js} lays a plan out, {@code paint.js} and {@code marks.js} draw it on two canvases, {@code
 * panels.js} has what stands beside, and {@code main.js} the state. Maven unpacks D3 to them.
 */
@NullMarked
package dev.symplan.planner.report.page;

import org.jspecify.annotations.NullMarked;
