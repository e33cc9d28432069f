import { assertEquals } from "@std/assert";
import { readableUsd } from "../../lib/console/format.tsx";

Deno.test("readableUsd() shows cents from a dollar up, and four decimals below", () => {
  const cases: [string, string][] = [
    ["0", "$0"],
    ["0.000000000001", "<$0.0001"],
    ["0.0316081", "$0.0316"],
    ["0.99999", "$1.0000"],
    ["1", "$1.00"],
    ["12.995", "$13.00"],
    ["12.994999999999", "$12.99"],
    ["1234567.5", "$1,234,567.50"],
    ["123456789012345678.019", "$123,456,789,012,345,678.02"],
    ["-0.0015", "-$0.0015"],
    ["-0.00001", ">-$0.0001"],
    ["-1234.5", "-$1,234.50"],
  ];
  for (const [usd, text] of cases) assertEquals(readableUsd(usd), text, usd);
});
