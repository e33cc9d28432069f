import { assertEquals } from "@std/assert";
import { tableText } from "../../lib/cli/table.ts";
import { csvText } from "../../lib/csv.ts";

Deno.test("tableText() aligns columns, numbers to the right, without trailing blanks", () => {
  const rows = [["NAME", "COUNT", "STATE"], ["a", "1", "on"], ["longer", "1000000", ""]];
  assertEquals(
    tableText(rows, { right: [1] }),
    "NAME      COUNT  STATE\na             1  on\nlonger  1000000\n",
  );
});

Deno.test("csvText() neutralizes spreadsheet formulas", () => {
  const cells = ["=1+1", "@a", "-a", "+1,2", "\t=1", "-0.5", "+49", "a=1", ""];
  // If semicolons separate cells, quotes in the middle of a line do not protect.
  assertEquals(csvText([["x;=HYPERLINK(1)", "a; +1;b", 'x;"=1"', "a\n@b"]]).split(","), [
    "x;'=HYPERLINK(1)",
    "a;' +1;b",
    `"x;'""=1"""`,
    `"a\n'@b"\r\n`,
  ]);
  assertEquals(csvText([cells]), "'=1+1,'@a,'-a,\"'+1,2\",'\t'=1,-0.5,+49,a=1,\r\n");
});

Deno.test("csvText() quotes as RFC 4180 requires", () => {
  const rows = [["a", 'say "yes"', "1,5"], ["two\nlines", "", " b "]];
  assertEquals(csvText(rows), 'a,"say ""yes""","1,5"\r\n"two\nlines",, b \r\n');
});
