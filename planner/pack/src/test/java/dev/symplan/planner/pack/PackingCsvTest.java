package dev.symplan.planner.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import org.junit.jupiter.api.Test;

class PackingCsvTest {

  private static final String EXAMPLE =
      """
      id,lower,upper,size
      b1,0,3,4
      b2,3,9,4
      b3,0,9,4
      """;

  @Test
  void readsMinimallocsColumns() {
    var csv = read(EXAMPLE);
    assertThat(csv.ids()).containsExactly("b1", "b2", "b3");
    assertThat(csv.problem().items())
        .containsExactly(new Item(0, 3, 4, 1), new Item(3, 9, 4, 1), new Item(0, 9, 4, 1));
  }

  @Test
  void readsColumnsInAnyOrderAndUnderTheirOtherNames() {
    var csv = read("size,alignment,buffer_id,start,end,offset\r\n100,64,x,2,5,0\r\n\r\n");
    assertThat(csv.ids()).containsExactly("x");
    assertThat(csv.problem().items()).containsExactly(new Item(2, 6, 100, 64));
  }

  @Test
  void readsWhatItWrites() {
    var csv = read(EXAMPLE);
    var packing = Packer.pack(csv.problem());
    var text = csv.write(packing);
    assertThat(text).startsWith("id,lower,upper,size,offset\nb1,0,3,4,");
    assertThat(read(text).problem().items()).isEqualTo(csv.problem().items());
    var aligned = read("id,lower,upper,size,alignment\na,0,1,100,64\n");
    assertThat(aligned.write(Packer.pack(aligned.problem())))
        .isEqualTo("id,lower,upper,size,alignment,offset\na,0,1,100,64,0\n");
  }

  @Test
  void readsAHeaderWithoutBuffers() {
    assertThat(read("id,lower,upper,size\n").problem().count()).isZero();
  }

  @Test
  void saysWhatIsWrongAndWhere() {
    assertError("", "f.csv: error[syntax]: the file is empty");
    assertError("id,lower,size\n", "f.csv:1:1: error[syntax]: no column 'upper'");
    assertError("id,lower,upper,size,colour\n", "f.csv:1:21: error[syntax]: unknown column");
    assertError(
        "id,lower,upper,end,size\n", "f.csv:1:16: error[syntax]: a second column for upper");
    assertError(EXAMPLE + "b4,1,2\n", "f.csv:5:1: error[syntax]: 3 fields");
    assertError(EXAMPLE + "b4,1,x,5\n", "f.csv:5:6: error[syntax]: 'x' is not a valid upper");
    assertError(EXAMPLE + "b4,1,2,0\n", "f.csv:5:8: error[syntax]: '0' is not a valid size");
    assertError(EXAMPLE + "b4,1,2,99999999999999999999\n", "f.csv:5:8: error[syntax]: '9999");
    assertError(EXAMPLE + "b4,2,2,5\n", "f.csv:5:6: error[syntax]: the buffer ends at 2");
    assertError(EXAMPLE + "b1,1,2,5\n", "f.csv:5:1: error[duplicate-name]: a second buffer 'b1'");
    assertError(
        "id,lower,upper,size,alignment\na,0,1,5,3\n", "f.csv:2:9: error[syntax]: the alignment 3");
  }

  @Test
  void reportsSeveralLines() {
    var error =
        catchThrowableOfType(
            CompileException.class, () -> read(EXAMPLE + "b4,1,x,5\nb5,y,2,5\nb6,1,2\n"));
    assertThat(error.diagnostics()).hasSize(3);
  }

  @Test
  void reportsEveryWrongFieldOfTheFile() {
    var text =
        """
        id,lower,upper,size,alignment
        a,x,2,0,3
        b,5,5,1,6
        a,1,y,z,1
        """;
    var error = catchThrowableOfType(CompileException.class, () -> read(text));
    assertThat(error.diagnostics())
        .extracting(d -> d.span().line() + ":" + d.span().column())
        .containsExactly("2:3", "2:7", "2:9", "3:5", "3:9", "4:1", "4:5", "4:7");
  }

  private static void assertError(String text, String expected) {
    var error = catchThrowableOfType(CompileException.class, () -> read(text));
    assertThat(error).as(text).isNotNull();
    assertThat(error.getMessage()).startsWith(expected);
    assertThat(error.diagnostics().getFirst().hint()).isNotEmpty();
  }

  private static PackingCsv read(String text) {
    return PackingCsv.read(new SourceFile("f.csv", text));
  }
}
