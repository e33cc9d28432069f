import { assertEquals } from "@std/assert";
import { answerFiles } from "./answers.ts";
import { requestFiles, REQUESTS } from "./requests.ts";

const FOLDERS = { requests: requestFiles, answers: answerFiles };

for (const [folder, makeFiles] of Object.entries(FOLDERS)) {
  Deno.test(`${folder} cross as their golden files say`, () => {
    const at = new URL(`./${folder}/`, import.meta.url);
    const files = makeFiles();
    const stored = [...Deno.readDirSync(at)].map(({ name }) => name).sort();
    assertEquals(stored, [...files.keys()].sort(), "`deno task golden` writes the files anew");
    for (const [name, text] of files) {
      // Line by line, so that a difference shows as lines of the file.
      const expected = Deno.readTextFileSync(new URL(name, at));
      if (text !== expected) assertEquals(text.split("\n"), expected.split("\n"), `${folder}/${name}`);
    }
  });
}

Deno.test("crossings are the same each time", () => {
  for (const makeFiles of Object.values(FOLDERS)) assertEquals(makeFiles(), makeFiles());
});

Deno.test("every protocol's requests cover what all of them can say", () => {
  const everywhere = [
    "text",
    "system",
    "turns",
    "tools",
    "parallel_tools",
    "orphans",
    "tool_choice",
    "schemas",
    "format",
  ]
    .concat([
      "sampling",
      "reasoning_depth",
      "reasoning_replay",
      "media",
      "images_in_results",
      "cache_marks",
      "refused",
    ]);
  for (const from of ["chat", "responses", "messages"]) {
    const names = REQUESTS.filter((request) => request.from === from).map(({ name }) => name);
    assertEquals(everywhere.filter((name) => !names.includes(name)), [], from);
  }
});
