/**
 * Reports of plans, as rows with facts.
 *
 * <p>{@link PlanReport} has a section for each view; {@link PlanDiff}, {@link PlanExplainer} and
 * {@link PeakAdvice} give rows, too. {@code report.render} writes them as text, JSON and other
 * formats, {@code report.page} as a page for browsers.
 */
@NullMarked
package dev.symplan.planner.report;

import org.jspecify.annotations.NullMarked;
