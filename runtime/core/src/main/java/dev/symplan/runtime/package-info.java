/** Running plans: sessions, backends and cases. */
@NullMarked
package dev.symplan.runtime;

import org.jspecify.annotations.NullMarked;
