/** What graphs are made of: types, values, arguments and process groups. All of it is immutable. */
@NullMarked
package dev.symplan.ir;

import org.jspecify.annotations.NullMarked;
