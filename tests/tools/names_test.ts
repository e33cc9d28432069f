import { assertEquals } from "@std/assert";
import { checkFrontDoors, checkImportCounts, checkTypeNames } from "../../tools/names.ts";

Deno.test("checkTypeNames() lists a type name exported by two files once", () => {
  assertEquals(
    checkTypeNames([
      { path: "lib/a.ts", text: "export interface Place {}\nexport type Only = 1;" },
      { path: "lib/b.ts", text: "export type Place = string;\ninterface Own {}" },
      {
        path: "lib/c.ts",
        text: "/*\nexport type Place = 1;\n*/\ninterface Own {}\nexport { type Only } from './a.ts';",
      },
    ]),
    ["lib/a.ts, lib/b.ts: each exports a type named Place; qualify the names"],
  );
});

Deno.test("checkImportCounts() counts modules, not names, and excepts the composition root", () => {
  const text = (count: number) =>
    Array.from({ length: count }, (_, at) => `import {\n  a${at},\n  b${at},\n} from "./m${at}.ts";\n`).join("");
  assertEquals(checkImportCounts([{ path: "lib/a.ts", text: text(15) + 'export { a } from "./m0.ts";\n' }]), []);
  assertEquals(checkImportCounts([{ path: "lib/a.ts", text: text(16) }]), [
    "lib/a.ts: imports 16 modules; the maximum is 15",
  ]);
  assertEquals(checkImportCounts([{ path: "lib/gateway.ts", text: text(16) }]), []);
});

Deno.test("checkFrontDoors() counts the values that a self-contained part exports, and not its types", () => {
  const door = (
    path: string,
    names: string,
  ) => [{ path, text: `/** A part. */\nexport { ${names} } from "./a.ts";\n` }];
  assertEquals(checkFrontDoors(door("lib/canvas/mod.ts", "a, b, type C, d")), []);
  assertEquals(checkFrontDoors(door("lib/canvas/mod.ts", "a, b, c, d, e, f, g")), [
    "lib/canvas/mod.ts: exports 7 values; expected 3 to 6",
  ]);
  assertEquals(checkFrontDoors(door("lib/canvas/mod.ts", "a, type B, type C, type D")), [
    "lib/canvas/mod.ts: exports 1 values; expected 3 to 6",
  ]);
  assertEquals(checkFrontDoors(door("lib/other/mod.ts", "a")), []);
});
