import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import denoJson from "../../deno.json" with { type: "json" };
import {
  BUILD_FOLDER,
  checkTag,
  compileArguments,
  compileRelease,
  layOutImage,
  OUTPUT_FOLDER,
  pack,
  SUMS_FILE,
  sumsOf,
  TARGETS,
} from "../../tools/release.ts";
import { obstacle } from "../support/compiling.ts";
import { npmCache, repositoryFile } from "./supply.ts";
import { findProgram, skipIf } from "../support/skip.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const WORKFLOWS = ["ci", "release"];
/** The encoders that may not be passed on: a name that their library leaves in them. */
const FORBIDDEN = "liq_attr";

async function outputOf(command: string, options: Deno.CommandOptions): Promise<{ code: number; text: string }> {
  const { code, stdout, stderr } = await new Deno.Command(command, {
    ...options,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal: AbortSignal.timeout(60_000),
  }).output();
  return { code, text: [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)).join("") };
}

Deno.test("checkTag() requires the tag of this version, and an entry in the changelog", () => {
  const given = { version: "1.2.0", changes: "# Changes\n\n## 1.2.0 (2027-01-01)\n\n## 1.1.0\n" };
  checkTag("v1.2.0", given);
  for (const tag of ["1.2.0", "v1.2", "v1.2.0-rc1", "v1.3.0", ""]) {
    assertThrows(() => checkTag(tag, given), Error, "Cannot release");
  }
  assertThrows(() => checkTag("v1.2.0", { ...given, changes: "## Unreleased\n" }), Error, 'no "## 1.2.0"');
});

Deno.test("a release is compiled by the task's command, with documented differences only", () => {
  const args = compileArguments({ target: "some-target", output: "/out/sluice", leftOut: ["/a", "/b"] });
  const added = ["--no-check", "--frozen", "--target", "some-target"];
  assertEquals(args.slice(0, 1 + added.length), ["compile", ...added]);
  const [command = ""] = denoJson.tasks.compile.command.split(" || ");
  const task = command.replaceAll("'", "").replace("build/sluice", "/out/sluice")
    .replace("$(deno info --json | deno run --allow-read tools/left_out.ts)", "--exclude=/a --exclude=/b");
  assertEquals(args.slice(1 + added.length), task.split(" ").slice(2));
});

Deno.test("checksums equal those of sha256sum, which detects a changed file", {
  ignore: skipIf(findProgram("sha256sum") === undefined, "sha256sum is not installed"),
}, async () => {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/b.tar.gz`, "b");
    await Deno.writeTextFile(`${folder}/a.json`, "a");
    await Deno.writeTextFile(`${folder}/${SUMS_FILE}`, await sumsOf(folder));
    const check = () => outputOf("sha256sum", { args: ["--check", "--strict", SUMS_FILE], cwd: folder });
    assertEquals(await check(), { code: 0, text: "a.json: OK\nb.tar.gz: OK\n" });
    // A second run does not include the file of the first one.
    assertEquals(await sumsOf(folder), await Deno.readTextFile(`${folder}/${SUMS_FILE}`));
    await Deno.writeTextFile(`${folder}/b.tar.gz`, "c");
    assertEquals((await check()).code, 1);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test({
  name: "a release is reproducible with other times and package copies, and starts",
  ignore: obstacle !== undefined || Deno.build.os !== "linux" || Deno.build.arch !== "x86_64",
  async fn(test) {
    const denort = Deno.env.get("DENORT_BIN");
    const compiler = {
      deno: Deno.env.get("COMPILE_DENO") ?? Deno.execPath(),
      packages: await npmCache(),
      ...(denort !== undefined && { env: { DENORT_BIN: denort } }),
    };
    const home = Deno.cwd();
    const folder = await Deno.makeTempDir();
    // The tool works in the current folder, which is a copy with any README here.
    for (
      const path of ["deno.json", "deno.lock", "main.ts", "lib", "routes", "types", "LICENSE", "NOTICE", "README.md"]
    ) {
      await Deno.symlink(`${ROOT}${path}`, `${folder}/${path}`);
    }
    for (const path of ["CHANGELOG.md", "sluice.example.jsonc"]) {
      await Deno.symlink(`${ROOT}${path}`, `${folder}/${path}`);
    }
    Deno.chdir(folder);
    // The best compression of an executable takes five seconds longer.
    Deno.env.set("GZIP", "-1");
    try {
      const executable = await compileRelease(compiler);
      const first = await Deno.readFile(executable);
      const archive = await pack(executable, "linux-x64");
      const packed = await Deno.readFile(archive);

      await test.step("the same bytes again", async () => {
        await compileRelease(compiler);
        assertEquals(await digest(await Deno.readFile(executable)), await digest(first));
        // Packing the executable again would take ten times as long.
        const packs: string[] = [];
        for (let time = 0; time < 2; time++) {
          await Deno.writeTextFile(`${folder}/small`, "small");
          const small = await pack(`${folder}/small`, "small");
          packs.push(await digest(await Deno.readFile(small)));
          await Deno.remove(small);
        }
        assertEquals(packs[0], packs[1]);
      });

      await test.step("without excluded files, and with required ones", () => {
        const text = new TextDecoder("latin1").decode(first);
        assertEquals([text.includes(FORBIDDEN), text.includes("o200k_base")], [false, true]);
      });

      await test.step("the workflow's trial accepts it, and rejects another file", async () => {
        await Deno.writeTextFile(`${OUTPUT_FOLDER}/${SUMS_FILE}`, await sumsOf(OUTPUT_FOLDER));
        const trial = () => outputOf(`${ROOT}tools/release_try.sh`, { args: [OUTPUT_FOLDER, "linux-x64"] });
        const { code, text } = await trial();
        assertEquals(code, 0, text);
        assertStringIncludes(text, "sluice/echo");
        assert((await outputOf(`${ROOT}tools/release_try.sh`, { args: [OUTPUT_FOLDER, "linux-arm64"] })).code !== 0);
        await Deno.writeFile(archive, packed.with(packed.length - 1, 0));
        await Deno.writeFile(archive, new Uint8Array([0]), { append: true });
        assert((await trial()).code !== 0);
        await Deno.writeFile(archive, packed);
      });

      await test.step("the image contains this executable", async () => {
        const image = await layOutImage("amd64");
        assertEquals(await digest(await Deno.readFile(`${image}/src/build/sluice`)), await digest(first));
        assertEquals(await Array.fromAsync(Deno.readDir(`${image}/stage/var/lib/sluice/data`)), []);
        await assertRejects(() => layOutImage("riscv"), Error, 'Cannot lay out an image for "riscv"');
      });
    } finally {
      Deno.env.delete("GZIP");
      Deno.chdir(home);
      for (const path of [folder, `${BUILD_FOLDER}/out`, `${BUILD_FOLDER}/pack`]) {
        // After an earlier failure some of them may be missing.
        await Deno.remove(path, { recursive: true }).catch(() => {});
      }
    }
  },
});

/** Bytes as a digest that can be compared and printed. */
async function digest(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

Deno.test("the workflows pin actions by commit, declare permissions, and contain no secrets", async () => {
  for (const name of WORKFLOWS) {
    const text = await repositoryFile(`.github/workflows/${name}.yml`);
    const uses = [...text.matchAll(/^\s*(?:- )?uses: (.*)$/gm)].map(([, used = ""]) => used);
    assert(uses.length > 0);
    for (const used of uses) {
      assert(/^(?:\.\/|[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$)/.test(used), `${name}: ${used}`);
    }
    assert(!/\bsecrets[.[]|pull_request_target|write-all/.test(text), name);
    // External values are passed to scripts only by the environment.
    for (const [, script = ""] of text.matchAll(/\brun: (.*)$/gm)) assert(!script.includes("${{"), script);
    assert(/^permissions:(?: \{\}|\n {2}contents: read)$/m.test(text), name);
    // The checkout keeps no token for the steps that follow.
    assertEquals(text.match(/actions\/checkout@/g)?.length, text.match(/persist-credentials: false/g)?.length, name);
  }
  const release = await repositoryFile(".github/workflows/release.yml");
  const jobs = release.slice(release.indexOf("\njobs:")).split(/\n(?= {2}[a-z]+:\n)/).slice(1);
  const writers = jobs.filter((job) => /: write/.test(job)).map((job) => /^ {2}([a-z]+):/.exec(job)?.[1]);
  assertEquals(writers, ["publish", "image"]);
  for (const job of jobs) assertStringIncludes(job, "    permissions:\n");
});

Deno.test("the release is tried on every target, with the Deno version of the Dockerfile and the gate", async () => {
  const release = await repositoryFile(".github/workflows/release.yml");
  assertEquals([...release.matchAll(/target: ([\w-]+),/g)].map(([, target]) => target), Object.keys(TARGETS));
  const version = /^FROM denoland\/deno:(\S+) AS build$/m.exec(await repositoryFile("Dockerfile"))?.[1];
  const lock = JSON.parse(await repositoryFile(".github/deno/package-lock.json"));
  assertEquals(lock.packages["node_modules/@deno/linux-x64-glibc"].version, version);
  for (const file of [".ci/run", ".github/workflows/ci.yml"]) {
    assertStringIncludes(await repositoryFile(file), `deno@${version}`);
  }
});

Deno.test("the scripts of the workflows are valid, and the files they call exist", {
  ignore: skipIf(findProgram("bash") === undefined, "bash is not installed"),
}, async () => {
  const release = await repositoryFile(".github/workflows/release.yml");
  const scripts = [...release.matchAll(/tools\/release_\w+\.sh/g)].map(([script]) => script);
  for (const script of new Set(scripts)) {
    assertEquals(await outputOf("bash", { args: ["-n", `${ROOT}${script}`] }), { code: 0, text: "" });
    assert(((await Deno.stat(`${ROOT}${script}`)).mode ?? 0) & 0o100, script);
  }
  for (const [, task = ""] of release.matchAll(/deno task (\w+)/g)) assert(task in denoJson.tasks, task);
});

Deno.test("the image is pushed for both architectures from the released executables, with its digest", {
  ignore: skipIf(findProgram("bash") === undefined, "bash is not installed"),
}, async () => {
  const folder = await Deno.makeTempDir();
  const digest = `sha256:${"0".repeat(64)}`;
  try {
    // Stand-ins that record their calls: there is no container engine in the tests.
    for (const name of ["docker", "deno"]) {
      const answer = name === "docker" ? `case "$*" in *inspect*) echo ${digest};; esac` : "";
      await Deno.writeTextFile(`${folder}/${name}`, `#!/bin/sh\necho ${name} "$@" >>"$CALLS"\n${answer}\n`, {
        mode: 0o755,
      });
    }
    const env = {
      PATH: `${folder}:${Deno.env.get("PATH")}`,
      CALLS: `${folder}/calls`,
      GITHUB_OUTPUT: `${folder}/output`,
    };
    const { code, text } = await outputOf(`${ROOT}tools/release_image.sh`, { args: ["ghcr.io/a/b", "1.2.0"], env });
    assertEquals(code, 0, text);
    assertEquals(await Deno.readTextFile(`${folder}/output`), `name=ghcr.io/a/b\ndigest=${digest}\n`);
    const calls = (await Deno.readTextFile(`${folder}/calls`)).trimEnd().split("\n");
    assertEquals(calls.length, 6);
    for (const [at, architecture] of [[0, "amd64"], [2, "arm64"]] as const) {
      assertEquals(calls[at], `deno task release image ${architecture}`);
      for (
        const part of [
          `--platform linux/${architecture}`,
          `build=build/image-${architecture}`,
          `b:1.2.0-${architecture} --push .`,
        ]
      ) assertStringIncludes(calls[at + 1] ?? "", part);
    }
    assertStringIncludes(
      calls[4] ?? "",
      "create --tag ghcr.io/a/b:1.2.0 ghcr.io/a/b:1.2.0-amd64 ghcr.io/a/b:1.2.0-arm64",
    );
    // The stage that the folder replaces is the one that the image copies from.
    const dockerfile = await repositoryFile("Dockerfile");
    for (const path of ["/src/build/sluice", "/stage/var/lib/sluice"]) assertStringIncludes(dockerfile, path);
    assertEquals([...dockerfile.matchAll(/COPY --from=(\w+)/g)].map(([, stage]) => stage), ["build", "build"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
