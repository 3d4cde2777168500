package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.PythonLiterals;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.fx.SizeExpr.Operator;
import dev.symplan.ir.text.StatementReader;
import java.util.ArrayList;
import java.util.List;
import org.antlr.v4.runtime.Token;
import org.jspecify.annotations.Nullable;

/** Reads Python expressions of FX graphs. */
final class ExprReader {
  /** Of the only integer that fits 64 bits with a minus sign but not without. */
  private static final String SMALLEST_DIGITS = Long.toString(Long.MIN_VALUE).substring(1);

  private final StatementReader statements;
  private final DiagnosticSink sink;

  /** {@code statements} knows where tokens stand. */
  ExprReader(StatementReader statements, DiagnosticSink sink) {
    this.statements = statements;
    this.sink = sink;
  }

  ImmutableList<FxExpr> exprs(List<FxTextParser.ExprContext> contexts) {
    var items = ImmutableList.<FxExpr>builderWithExpectedSize(contexts.size());
    for (var context : contexts) {
      items.add(expr(context));
    }
    return items.build();
  }

  FxExpr expr(FxTextParser.ExprContext context) {
    if (context.operands.size() == 1) {
      return unary(context.operands.getFirst());
    }
    var operands = new ArrayList<FxExpr>();
    var operators = new ArrayList<String>();
    context.operators.forEach(operator -> operators.add(operator.getText()));
    for (int i = 0; i < context.operands.size(); i++) {
      var operand = context.operands.get(i);
      boolean power = i < operators.size() && operators.get(i).equals("**");
      operands.add(power ? primary(operand.operand) : unary(operand));
    }
    // Power binds to the right, and tighter than a minus in front of it; the others bind to the
    // left, products before sums before comparisons.
    for (int i = operators.size() - 1; i >= 0; i--) {
      if (operators.get(i).equals("**")) {
        join(operands, operators, i);
        if (context.operands.get(i).minus != null) {
          operands.set(i, new FxExpr.Negative(operands.get(i)));
        }
      }
    }
    joinAll(operands, operators, List.of("*", "/", "//", "%"));
    joinAll(operands, operators, List.of("+", "-"));
    joinAll(operands, operators, List.of("<", "<=", ">", ">=", "==", "!="));
    return operands.getFirst();
  }

  private static void joinAll(List<FxExpr> operands, List<String> operators, List<String> wanted) {
    int i = 0;
    while (i < operators.size()) {
      if (wanted.contains(operators.get(i))) {
        join(operands, operators, i);
      } else {
        i++;
      }
    }
  }

  private static void join(List<FxExpr> operands, List<String> operators, int i) {
    var joined =
        new FxExpr.Binary(
            Operator.ofSign(operators.remove(i)), operands.get(i), operands.remove(i + 1));
    operands.set(i, joined);
  }

  private FxExpr unary(FxTextParser.UnaryContext context) {
    if (context.minus == null) {
      return primary(context.operand);
    }
    @Nullable Token token = context.operand.token;
    if (token != null
        && token.getType() == FxTextLexer.INT
        && token.getText().equals(SMALLEST_DIGITS)
        && context.operand.indices.isEmpty()) {
      return new FxExpr.Int(Long.MIN_VALUE);
    }
    var operand = primary(context.operand);
    return switch (operand) {
      case FxExpr.Int(long value) -> new FxExpr.Int(-value);
      case FxExpr.Float(double value) -> new FxExpr.Float(-value);
      default -> new FxExpr.Negative(operand);
    };
  }

  private FxExpr primary(FxTextParser.PrimaryContext context) {
    FxExpr value;
    if (context.call() != null) {
      value = attribute(call(context.call()), context.attribute);
    } else if (context.name != null) {
      value = name(context.name.getText());
    } else if (context.token != null) {
      value = literal(context.token);
    } else if (context.dict() != null) {
      value = new FxExpr.Dict(exprs(context.dict().keys), exprs(context.dict().values));
    } else if (context.paren != null && context.items.size() == 1 && context.commas.isEmpty()) {
      value = expr(context.items.getFirst());
    } else {
      value = new FxExpr.Seq(exprs(context.items));
    }
    for (var index : context.indices) {
      value = new FxExpr.Index(value, expr(index.value));
    }
    return value;
  }

  /** {@code getattr(self, "0").weight}: an attribute whose path is no Python name. */
  private static FxExpr attribute(FxExpr.Call call, @Nullable Token attribute) {
    if (attribute == null) {
      return call;
    }
    return call.target().equals("getattr")
            && call.args().size() == 2
            && call.args().getLast() instanceof FxExpr.Str(String name)
        ? new FxExpr.Call(
            call.target(),
            ImmutableList.of(call.args().getFirst(), new FxExpr.Str(name + attribute.getText())),
            call.keywords(),
            call.span())
        : new FxExpr.Call(
            call.target() + "(…)" + attribute.getText(), call.args(), call.keywords(), call.span());
  }

  private static FxExpr name(String text) {
    return switch (text) {
      case "inf", "math.inf" -> new FxExpr.Float(Double.POSITIVE_INFINITY);
      case "nan", "math.nan" -> new FxExpr.Float(Double.NaN);
      default -> new FxExpr.Name(text);
    };
  }

  private FxExpr literal(Token token) {
    var text = token.getText();
    return switch (token.getType()) {
      case FxTextLexer.INT -> integer(token);
      case FxTextLexer.FLOAT -> new FxExpr.Float(Double.parseDouble(text));
      case FxTextLexer.STRING -> string(token);
      case FxTextLexer.TRUE -> new FxExpr.Bool(true);
      case FxTextLexer.FALSE -> new FxExpr.Bool(false);
      default -> FxExpr.None.NONE;
    };
  }

  private FxExpr integer(Token token) {
    try {
      return new FxExpr.Int(Long.parseLong(token.getText()));
    } catch (NumberFormatException e) {
      wrong(token, "%s does not fit 64 bits".formatted(token.getText()));
      return new FxExpr.Int(0);
    }
  }

  private FxExpr string(Token token) {
    try {
      return new FxExpr.Str(PythonLiterals.unquote(token.getText()));
    } catch (IllegalArgumentException e) {
      wrong(token, String.valueOf(e.getMessage()));
      return new FxExpr.Str("");
    }
  }

  private void wrong(Token token, String message) {
    sink.report(Diagnostic.error(DiagnosticCode.SYNTAX, statements.span(token), message));
  }

  private FxExpr.Call call(FxTextParser.CallContext context) {
    var args = ImmutableList.<FxExpr>builderWithExpectedSize(context.args.size());
    var keywords = ImmutableMap.<String, FxExpr>builder();
    for (var arg : context.args) {
      if (arg.keyword == null) {
        args.add(expr(arg.value));
      } else {
        keywords.put(arg.keyword.getText(), expr(arg.value));
      }
    }
    return new FxExpr.Call(
        context.target.getText(),
        args.build(),
        keywords.buildKeepingLast(),
        statements.span(context.start, context.stop));
  }
}
