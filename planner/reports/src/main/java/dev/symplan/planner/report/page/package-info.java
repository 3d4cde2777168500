/**
 * Reports as a page for browsers.
 *
 * <p>The assets are resources beside {@link HtmlRenderer}: {@code data.js} reads the report, {@code
 * map.js} lays a plan out, {@code paint.js} and {@code marks.js} draw it on two canvases, {@code
 * panels.js} has the panels beside them, and {@code main.js} the state. Maven adds D3.
 */
@NullMarked
package dev.symplan.planner.report.page;

import org.jspecify.annotations.NullMarked;
