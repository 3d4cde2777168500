/** How runs fail: the exception that callers get, and what processes say to each other. */
@NullMarked
package dev.symplan.runtime.failure;

import org.jspecify.annotations.NullMarked;
