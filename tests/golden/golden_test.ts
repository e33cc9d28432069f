import { assertEquals } from "@std/assert";
import { answerFiles } from "./answers.ts";
import { PROTOCOLS, UPSTREAMS } from "./crossings.ts";
import { EVERY_PAIR, requestFiles, REQUESTS } from "./requests.ts";

const FOLDERS = { requests: requestFiles(), answers: answerFiles() };

for (const [folder, files] of Object.entries(FOLDERS)) {
  Deno.test(`translated ${folder} are as in the golden files`, () => {
    const root = new URL(`./${folder}/`, import.meta.url);
    assertEquals(filesIn(root).sort(), [...files.keys()].sort(), "`deno task golden` writes the files anew");
    for (const [name, text] of files) {
      // Line by line, so that a difference shows as lines of the file.
      const expected = Deno.readTextFileSync(new URL(name, root));
      if (text !== expected) assertEquals(text.split("\n"), expected.split("\n"), `${folder}/${name}`);
    }
  });
}

function filesIn(root: URL, path = ""): string[] {
  return [...Deno.readDirSync(new URL(path, root))].flatMap(({ name, isDirectory }) =>
    isDirectory ? filesIn(root, `${path}${name}/`) : [path + name]
  );
}

Deno.test("golden files cover every pair of protocols", () => {
  for (const [folder, files] of Object.entries(FOLDERS)) {
    for (const [name, text] of files) {
      const [from = "", file = ""] = name.split("/");
      if (from === name || (folder === "requests" && !EVERY_PAIR.includes(file.replace(".json", "")))) continue;
      const others = folder === "requests" ? UPSTREAMS : PROTOCOLS;
      const missing = others.filter((to) => to !== from && !new RegExp(`"[^"]*\\b${to}\\b[^"]*": ?[{]`).test(text));
      assertEquals(missing, [], `${folder}/${name}`);
    }
  }
});

Deno.test("every protocol has the common request cases", () => {
  const others =
    "turns tools parallel_tools orphans tool_choice schemas format sampling images_in_results cache_marks refused";
  const everywhere = [...EVERY_PAIR, ...others.split(" ")];
  for (const from of ["chat", "responses", "messages"]) {
    const names = REQUESTS.filter((request) => request.from === from).map(({ name }) => name);
    assertEquals(everywhere.filter((name) => !names.includes(name)), [], from);
  }
});
