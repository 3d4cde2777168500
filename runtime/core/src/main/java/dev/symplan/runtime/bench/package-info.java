/** Measurements of collectives and of what runs beside them, on any backend. */
@NullMarked
package dev.symplan.runtime.bench;

import org.jspecify.annotations.NullMarked;
