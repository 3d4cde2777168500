/** What the runtime adds to reports of plans. */
@NullMarked
package dev.symplan.runtime.report;

import org.jspecify.annotations.NullMarked;
