/** Making the archive for hosts without Java. */
@NullMarked
package dev.symplan.dist;

import org.jspecify.annotations.NullMarked;
