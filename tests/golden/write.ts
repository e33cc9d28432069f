/** Rewrites the golden files: `deno task golden`. Review the diff. */
import { answerFiles } from "./answers.ts";
import { requestFiles } from "./requests.ts";

const HERE = new URL("./", import.meta.url);

for (const [folder, files] of Object.entries({ requests: requestFiles(), answers: answerFiles() })) {
  const root = new URL(`${folder}/`, HERE);
  Deno.removeSync(root, { recursive: true });
  for (const [name, text] of files) {
    const file = new URL(name, root);
    Deno.mkdirSync(new URL("./", file), { recursive: true });
    Deno.writeTextFileSync(file, text);
  }
}
