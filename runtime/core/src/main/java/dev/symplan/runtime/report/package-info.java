/** The runtime's sections in reports of plans. */
@NullMarked
package dev.symplan.runtime.report;

import org.jspecify.annotations.NullMarked;
