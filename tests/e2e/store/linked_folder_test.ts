import { assertEquals, assertMatch } from "@std/assert";
import { inFolder } from "../../support/program.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

/** Runs `keys add` with the permissions of the executable, which cover only its working folder. */
async function addKey(cwd: string): Promise<{ code: number; err: string }> {
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--quiet", "--no-check", "--no-prompt", "--config", `${ROOT}deno.json`],
      ...["--allow-net", "--allow-env", `--allow-read=.,${ROOT}`, "--allow-write=./data", `${ROOT}main.ts`],
      ...["keys", "add", "one"],
    ],
    cwd,
    env: { SLUICE_CONFIG: "", SLUICE_STORE: "", NO_COLOR: "1" },
    stdin: "null",
    stdout: "null",
  }).output();
  return { code, err: new TextDecoder().decode(stderr) };
}

Deno.test({
  name: "a data folder linked to an unwritable place is refused, and nothing is written outside",
  ignore: Deno.build.os === "windows",
  fn: () =>
    inFolder(async (folder) => {
      const [inside, outside] = [`${folder}/inside`, `${folder}/outside`];
      for (const each of [inside, outside]) await Deno.mkdir(each);
      await Deno.symlink(outside, `${inside}/data`);
      const { code, err } = await addKey(inside);
      assertEquals([code, await Array.fromAsync(Deno.readDir(outside))], [1, []], err);
      const real = await Deno.realPath(outside);
      assertMatch(err, /^Cannot open the store "\.\/data\/sluice\.db": ".*\/inside\/data" is a symbolic link to /);
      assertMatch(err, new RegExp(`"${real}", where this program may not (read|write)\n$`));

      await Deno.remove(`${inside}/data`);
      await Deno.mkdir(`${inside}/data`);
      assertEquals((await addKey(inside)).code, 0);
    }),
});
