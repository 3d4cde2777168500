/** Source locations and the messages that point at them. */
@NullMarked
package dev.symplan.ir.diag;

import org.jspecify.annotations.NullMarked;
