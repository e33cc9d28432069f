/** Writes the golden files anew: `deno task golden`. What changed is for a person to judge, in the diff. */
import { answerFiles } from "./answers.ts";
import { requestFiles } from "./requests.ts";

const HERE = new URL("./", import.meta.url);

for (const [folder, files] of Object.entries({ requests: requestFiles(), answers: answerFiles() })) {
  const at = new URL(`${folder}/`, HERE);
  Deno.mkdirSync(at, { recursive: true });
  for (const { name } of Deno.readDirSync(at)) if (!files.has(name)) Deno.removeSync(new URL(name, at));
  for (const [name, text] of files) Deno.writeTextFileSync(new URL(name, at), text);
}
