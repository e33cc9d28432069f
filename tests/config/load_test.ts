import { assert, assertEquals, assertRejects } from "@std/assert";
import { ConfigError } from "../../lib/config.ts";
import { addressWithoutPassword } from "../../lib/config/address.ts";
import { type ConfigFlags, loadConfig, type LoadedConfig } from "../../lib/config/load.ts";

interface World {
  flags?: ConfigFlags;
  env?: Record<string, string>;
  files?: Record<string, string>;
}

function load({ flags = {}, env = {}, files = {} }: World): Promise<LoadedConfig> {
  return loadConfig({
    flags,
    env: (name) => new Map(Object.entries(env)).get(name),
    readTextFile(path) {
      const text = new Map(Object.entries(files)).get(path);
      return text === undefined ? Promise.reject(new Deno.errors.NotFound("gone")) : Promise.resolve(text);
    },
  });
}

async function problems(world: World): Promise<string[]> {
  return (await assertRejects(() => load(world), ConfigError)).problems
    .map((line) => line.replace(/^sluice\.jsonc:1:\d+: /, ""));
}

Deno.test("loadConfig() uses the built-in configuration without a file", async () => {
  const { config, path } = await load({});
  assertEquals(path, undefined);
  assertEquals(config.listen.port, 8790);
});

Deno.test("loadConfig() prefers the flag's file, then the environment's, then the default", async () => {
  const files = {
    "flag.jsonc": '{ "listen": { "port": 1 } }',
    "env.jsonc": '{ "listen": { "port": 2 } }',
    "sluice.jsonc": '{ "listen": { "port": 3 } }',
  };
  const cases: [World, string, number][] = [
    [{ flags: { config: "flag.jsonc" }, env: { SLUICE_CONFIG: "env.jsonc" } }, "flag.jsonc", 1],
    [{ env: { SLUICE_CONFIG: "env.jsonc" } }, "env.jsonc", 2],
    [{ env: { SLUICE_CONFIG: "" } }, "sluice.jsonc", 3],
    [{}, "sluice.jsonc", 3],
  ];
  for (const [world, path, port] of cases) {
    const loaded = await load({ ...world, files });
    assertEquals([loaded.path, loaded.config.listen.port], [path, port]);
  }
});

Deno.test("loadConfig() uses SLUICE_CONFIG_TEXT if no file is named", async () => {
  const files = { "sluice.jsonc": '{ "listen": { "port": 3 } }', "a.jsonc": '{ "listen": { "port": 4 } }' };
  const env = { SLUICE_CONFIG_TEXT: '{ "listen": { "port": 5 } } // text' };
  const seen = async (world: World) => {
    const { config, path, variable } = await load({ files, ...world });
    return [config.listen.port, path, variable];
  };
  assertEquals(await seen({ env }), [5, undefined, "SLUICE_CONFIG_TEXT"]);
  assertEquals(await seen({ env: { SLUICE_CONFIG_TEXT: "" } }), [3, "sluice.jsonc", undefined]);
  assertEquals(await seen({ env, flags: { config: "a.jsonc" } }), [4, "a.jsonc", undefined]);
  assertEquals(await seen({ env: { ...env, SLUICE_CONFIG: "a.jsonc" } }), [4, "a.jsonc", undefined]);
  assertEquals(await problems({ env: { SLUICE_CONFIG_TEXT: '{\n  "listen": {,}\n}' } }), [
    "SLUICE_CONFIG_TEXT:2:14: Expected the name of a member in double quotes",
  ]);
});

Deno.test("loadConfig() overrides the file by the environment and both by flags", async () => {
  const files = { "sluice.jsonc": '{ "listen": { "hostname": "a", "port": 1 }, "store": "sqlite:a" }' };
  const env = { SLUICE_HOSTNAME: "b", SLUICE_PORT: "2", SLUICE_STORE: "sqlite:b" };
  const seen = async (world: World) => {
    const { config } = await load(world);
    return [config.listen.hostname, config.listen.port, addressWithoutPassword(config.store)];
  };
  assertEquals(await seen({ files }), ["a", 1, "sqlite:a"]);
  assertEquals(await seen({ files, env }), ["b", 2, "sqlite:b"]);
  const flags = { hostname: "c", port: "0", store: "memory:" };
  assertEquals(await seen({ files, env, flags }), ["c", 0, "memory:"]);
  assertEquals(await seen({ flags: { port: "5" } }), ["127.0.0.1", 5, "sqlite:./data/sluice.db"]);
});

Deno.test("loadConfig() reports invalid flags together with problems of the file", async () => {
  const world = {
    files: { "sluice.jsonc": '{ "prots": 1 }' },
    flags: { port: "80x", hostname: "" },
    env: { SLUICE_STORE: "redis:" },
  };
  const [unknown, port, store, hostname, ...more] = await problems(world);
  assertEquals(port, '--port: Expected a port from 0 to 65535, not "80x"');
  assertEquals(store, 'SLUICE_STORE: Expected "sqlite:PATH", "memory:" or "postgres://USER@HOST/DATABASE"');
  assertEquals(hostname, "listen.hostname: Expected at least 1 character, not 0");
  assertEquals(unknown?.slice(0, 21), "prots: Unknown member");
  assertEquals(more, []);
  assertEquals(await problems({ env: { SLUICE_PORT: "65536" } }), [
    'SLUICE_PORT: Expected a port from 0 to 65535, not "65536"',
  ]);
});

Deno.test("loadConfig() says where in the file a problem is", async () => {
  const file = `{
  // Prices are strings.
  "models": [{ "id": "acme/one", "tragets": [] }, { "id": "acme/two" }],
  "groups": {
    "a b": {},
    "team": { "models": 5 }
  }
}`;
  const found = await assertRejects(() => load({ files: { "sluice.jsonc": file }, flags: { port: "x" } }), ConfigError);
  const places = found.problems.map((line) => line.split(": ").slice(0, 2).join(": "));
  assertEquals(places[0], "sluice.jsonc:3:34: models[0].tragets");
  for (
    const place of [
      "sluice.jsonc:3:34: models[0].tragets",
      "sluice.jsonc:3:14: models[0].targets",
      "sluice.jsonc:3:51: models[1].targets",
      'sluice.jsonc:5:5: groups["a b"]',
      "sluice.jsonc:6:15: groups.team.models",
      '--port: Expected a port from 0 to 65535, not "x"',
    ]
  ) assert(places.includes(place), `${place} is not in\n${places.join("\n")}`);
});

Deno.test("loadConfig() reads the address of limits like that of the store", async () => {
  const files = { "sluice.jsonc": '{ "limits_store": "redis://file" }' };
  const env = { SLUICE_LIMITS_STORE: "rediss://:pw@env" };
  const seen = async (world: World) => addressWithoutPassword((await load(world)).config.limits_store);
  assertEquals(await seen({}), "memory:");
  assertEquals(await seen({ files }), "redis://file");
  assertEquals(await seen({ files, env }), "rediss://env");
  assertEquals(await seen({ files, env, flags: { "limits-store": "redis://:pw@flag:1" } }), "redis://flag:1");
});

Deno.test("loadConfig() rejects a password in the file, names the variable for it, and never shows it", async () => {
  const cases: [string, string, string][] = [
    ["store", "postgres://sluice:hunter2@db/sluice", "SLUICE_STORE"],
    ["store", "postgres://db/sluice?user=sluice&password=hunter2", "SLUICE_STORE"],
    ["limits_store", "redis://:hunter2@cache", "SLUICE_LIMITS_STORE"],
  ];
  for (const [member, address, variable] of cases) {
    assertEquals(await problems({ files: { "sluice.jsonc": JSON.stringify({ [member]: address }) } }), [
      `${member}: A password does not belong in the file: put the address into ${variable}`,
    ]);
  }
});

Deno.test("loadConfig() shows no part of an invalid address", async () => {
  const file = (store: string): World => ({ files: { "sluice.jsonc": JSON.stringify({ store }) } });
  const worlds: World[] = [
    ...["mysql://sluice:hunter2@db/sluice", "postgres:/sluice:hunter2@db", "postgres://sluice:hunter2@db:99999/s"]
      .flatMap((address): World[] => [
        file(address),
        { env: { SLUICE_STORE: address } },
        { flags: { store: address } },
        { env: { SLUICE_LIMITS_STORE: address } },
        { flags: { "limits-store": address } },
      ]),
    { env: { SLUICE_LIMITS_STORE: "redis://:hunter2@cache:99999" } },
  ];
  for (const world of worlds) {
    const lines = await problems(world);
    assertEquals(lines.filter((line) => line.includes("hunter2")), [], JSON.stringify(world));
  }
});

Deno.test("loadConfig() reports the position of an error in the file's text", async () => {
  assertEquals(await problems({ files: { "sluice.jsonc": '{\n  "listen": {,}\n}' } }), [
    "sluice.jsonc:2:14: Expected the name of a member in double quotes",
  ]);
});

Deno.test("loadConfig() rejects a named file that does not exist", async () => {
  assertEquals(await problems({ flags: { config: "gone.jsonc" } }), [
    'Cannot read the configuration "gone.jsonc": there is no such file',
  ]);
});

Deno.test("loadConfig() reads the admin port from the file, the environment and the flag", async () => {
  const admin = (listen: string) => ({ "sluice.jsonc": `{ "admin": { "key": { "env": "ADMIN" }${listen} } }` });
  const files = admin(', "listen": { "hostname": "::1", "port": 1 }');
  const env = { ADMIN: "an-admin-key-of-tests" };
  const cases: [World, unknown][] = [
    [{ files, env }, { hostname: "::1", port: 1 }],
    [{ files, env: { ...env, SLUICE_ADMIN_PORT: "2" } }, { hostname: "::1", port: 2 }],
    [{ files, env: { ...env, SLUICE_ADMIN_PORT: "2" }, flags: { "admin-port": "3" } }, { hostname: "::1", port: 3 }],
    [{ files, env: { ...env, SLUICE_ADMIN_PORT: "" } }, { hostname: "::1", port: 1 }],
    [{ files: admin(""), env: { ...env, SLUICE_ADMIN_PORT: "4" } }, { hostname: "127.0.0.1", port: 4 }],
  ];
  for (const [world, listen] of cases) assertEquals((await load(world)).config.admin?.listen, listen);
});

Deno.test("loadConfig() rejects an invalid admin port, and one without an admin side", async () => {
  const files = { "sluice.jsonc": '{ "admin": { "key": { "env": "ADMIN" } } }' };
  const env = { ADMIN: "an-admin-key-of-tests" };
  assertEquals(await problems({ files, env, flags: { "admin-port": "65536" } }), [
    '--admin-port: Expected a port from 0 to 65535, not "65536"',
  ]);
  assertEquals(await problems({ env: { SLUICE_ADMIN_PORT: "9" } }), [
    "SLUICE_ADMIN_PORT: The admin listener is not configured: set `admin`",
  ]);
});
