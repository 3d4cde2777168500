package dev.symplan.ir.op;

import dev.symplan.ir.Arg;
import java.util.Optional;

/**
 * A parameter of a schema.
 *
 * @param defaultText the default as written, so that a schema prints as it was
 * @param keywordOnly whether it stands after the {@code *}
 */
public record Param(
    String name,
    SchemaType type,
    AliasInfo alias,
    Optional<Arg> defaultValue,
    String defaultText,
    boolean keywordOnly) {

  Param withAlias(AliasInfo newAlias) {
    return new Param(name, type, newAlias, defaultValue, defaultText, keywordOnly);
  }

  @Override
  public String toString() {
    return SchemaPrinter.typed(type, alias)
        + " "
        + name
        + (defaultValue.isPresent() ? "=" + defaultText : "");
  }
}
