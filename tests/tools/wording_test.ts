import { assertEquals } from "@std/assert";
import { readSources } from "../../tools/sources.ts";
import { checkWording } from "../../tools/wording.ts";

/** Built at run time, so that the check does not find it in this file. */
const WORD = ["who", "ever"].join("");

Deno.test("checkWording() finds words in comments and test titles, and reports their lines", () => {
  const texts = [
    `// ${WORD} reads`,
    `const a = 1; // ${WORD} reads`,
    `/** Answers ${WORD} asks. */`,
    `/**\n * Answers\n * ${WORD} asks.\n */`,
    `Deno.test("${WORD} asks gets an answer", () => {});`,
  ];
  const reported = texts.map((text) => checkWording([{ path: "lib/a.ts", text }]));
  const found = (line: number) => [`lib/a.ts:${line}: says "${WORD}"; name the subject instead`];
  assertEquals(reported, [found(1), found(1), found(1), found(3), found(1)]);
});

Deno.test("checkWording() finds comments that lead with a question", () => {
  const [where, whether] = ["W here", "W hether"].map((word) => word.replace(" ", ""));
  const texts = ["/** How many reads. */", `const a = 1; // ${where} it is.`, `/**\n * ${whether} it is read.\n */`];
  const found = texts.map((text) => checkWording([{ path: "lib/a.ts", text }]));
  const problem = (word: string, line = 1) => [`lib/a.ts:${line}: says "${word}"; name the subject instead`];
  assertEquals(found, [problem("How"), problem("Where"), problem("Whether", 2)]);
});

Deno.test("checkWording() finds comments on limits that begin with Most", () => {
  const most = ["M", "ost"].join("");
  const found = (text: string) => checkWording([{ path: "lib/a.ts", text }]);
  assertEquals(found(`/** ${most} bytes of a body. */`), [
    `lib/a.ts:1: says "${most} bytes of"; name the subject instead`,
  ]);
  assertEquals(found(`// ${most} of the calls fail.`), []);
  assertEquals(found(`// ${most} calls have one event.`), []);
});

Deno.test("checkWording() ignores code, texts and names in backticks", () => {
  const texts = [
    `const ${WORD} = 1;`,
    `const text = "${WORD} // asks";`,
    `/** The user \`${WORD}\`. */`,
    "// The reader knows How",
  ];
  for (const text of texts) assertEquals(checkWording([{ path: "lib/a.ts", text }]), [], text);
});

Deno.test("comments and test titles of the repository avoid the listed words", async () => {
  const folders = ["lib", "routes", "tests", "tools", "bench", "main.ts"];
  assertEquals(checkWording((await Promise.all(folders.map(readSources))).flat()), []);
});
