import { assertEquals } from "@std/assert";
import {
  averageLength,
  checkCommands,
  checkConfigurations,
  checkDocuments,
  checkLinks,
  checkMentions,
  checkProse,
  readPages,
  wordCount,
} from "../../tools/docs.ts";
import { readPage } from "../../tools/markdown.ts";
import { commandsOf } from "../../tools/shell_words.ts";

Deno.test("the documentation has no problem (run: deno task docs)", async () => {
  assertEquals(await checkDocuments(readPages()), []);
});

/** A page of the documentation with this text. */
function page(text: string) {
  return readPage("docs/README.md", text);
}

Deno.test("long sentences and forbidden words are found, but not in code or names", () => {
  const long = `${"word ".repeat(37)}end. Short one.`;
  assertEquals(checkProse(page(`${long}\n\nNobody is told.\n\n| a | for ever |\n\n\`nobody\` \n`)), [
    `docs/README.md:1: 38 words in one sentence: ${"word ".repeat(12)}…`,
    'docs/README.md:3: "Nobody": use a plainer word',
    'docs/README.md:5: "for ever": use a plainer word',
  ]);
  assertEquals(checkProse(readPage("tests/README.md", "Nobody is told.")), []);
});

Deno.test("sentences are counted with code and links as words, across lines and items", () => {
  const read = page(
    "One `code block` [of two](x.md)\nlines. And more.\n\n- An item.\n- Version 1.2 of e.g. this.\n\n```sh\nx y z\n```\n",
  );
  assertEquals(read.sentences.map(({ words }) => words), [5, 2, 2, 5]);
  assertEquals([averageLength(read), wordCount(read)], [3.5, 14]);
});

Deno.test("a page whose sentences are long on average is found", () => {
  const text = `Word ${"word ".repeat(23)}end. `.repeat(3);
  assertEquals(checkProse(page(text)), ["docs/README.md: 25.0 words per sentence; the maximum is 20"]);
});

Deno.test("links to missing files and headings are found", () => {
  const text =
    "# A `b`, c\n\n[a](#a-b-c) [b](#b) [c](none.md) [d](../README.md#none) [e](https://x.y/z) [f](../deno.json)\n";
  assertEquals(checkLinks([page(text), readPage("README.md", "# Sluice")]), [
    "docs/README.md:3: #b: no such heading",
    "docs/README.md:3: none.md: no such file",
    "docs/README.md:3: ../README.md#none: no such heading",
  ]);
});

Deno.test("names of missing pages in sources are found", () => {
  const text = "// See docs/README.md and docs/none.md, https://x.y/docs/z.md\n";
  assertEquals(checkMentions([{ path: "lib/a.ts", text }]), ["lib/a.ts: docs/none.md: no such file"]);
});

Deno.test("commands, flags and tasks that do not exist are found, behind wrappers and in console blocks", () => {
  const text = "`sluice keys` and `sluice explain` and `sluice fly` and `sluice usage --by`\n\n" +
    "```sh\nexport K=$(sluice keys add me --no) # sluice none\nnpx -y deno@2.9.6 task nope\n" +
    "docker run --rm sluice keys fly x\n```\n\n```console\n$ sluice usage --bye 1\nsluice none\n```\n";
  const found = checkCommands(page(text)).map((problem) => problem.split(":").slice(0, 4).join(":"));
  assertEquals(found, [
    'docs/README.md:3: sluice keys add me --no: Unknown flag "--no" of "keys add"; known',
    'docs/README.md:3: deno task nope: deno.json has no task "nope"',
    'docs/README.md:3: sluice keys fly x: Unknown command "keys fly"; known',
    'docs/README.md:9: sluice usage --bye 1: Unknown flag "--bye" of "usage"; known',
    'docs/README.md:1: sluice fly: Unknown command "fly"; known',
  ]);
});

Deno.test("configurations that do not load are found", async () => {
  const text = '```jsonc\n{ "listen": { "prot": 1 } }\n```\n\n```json\n{ "a": … }\n```\n\n```json\n{ "a" }\n```\n';
  assertEquals(
    (await checkConfigurations(page(text))).map((problem) => problem.slice(0, 63)),
    [
      "docs/README.md:1: sluice.jsonc:1:15: listen.prot: Unknown member",
      'docs/README.md:9: Expected ":" after "a"',
    ].map((problem) => problem.slice(0, 63)),
  );
});

Deno.test("commands are read as a shell reads them", () => {
  const text =
    "A=1 B=2 sluice usage --by 'a b' \\\n  --csv > x.csv && (cd 1 && ./build/sluice check) | tee \"$(sluice version)\"\n";
  assertEquals(commandsOf(text), [
    ["sluice", "usage", "--by", "a b", "--csv"],
    ["cd", "1"],
    ["sluice", "check"],
    ["tee", "$(sluice version)"],
  ]);
});
