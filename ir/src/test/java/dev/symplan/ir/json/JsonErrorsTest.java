package dev.symplan.ir.json;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import org.junit.jupiter.api.Test;

class JsonErrorsTest {
  @Test
  void limitsAreSaidInWords() {
    var nested = new SourceFile("a.json", "[".repeat(2000));
    assertThatThrownBy(() -> Json.parse(nested, new JsonErrors(DiagnosticCode.BAD_TIES)))
        .isInstanceOf(CompileException.class)
        // Jackson writes numbers as the locale has them.
        .hasMessageMatching(".* Document nesting depth .* the maximum allowed \\(\\p{Nd}+\\)\\s*")
        .hasMessageNotContaining("not JSON");
  }
}
