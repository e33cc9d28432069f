import { assertEquals } from "@std/assert";

Deno.test("the Kubernetes manifest explains how to create its secret, with every variable of its configuration", async () => {
  const manifest = await Deno.readTextFile(`${import.meta.dirname}/../../../deploy/kubernetes/sluice.yaml`);
  const named = Array.from(manifest.matchAll(/secretRef: \{ name: (\S+) \}/g), ([, name]) => name);
  const [, made, values = ""] = /kubectl create secret generic (\S+) (.*)/.exec(manifest) ?? [];
  assertEquals(named, [made]);
  const variables = Array.from(manifest.matchAll(/"env": "(\w+)"/g), ([, name]) => name);
  assertEquals(Array.from(values.matchAll(/--from-literal=(\w+)=/g), ([, name]) => name), variables);
});

Deno.test("the image runs as the numeric user of the manifest", async () => {
  const root = `${import.meta.dirname}/../../..`;
  const manifest = await Deno.readTextFile(`${root}/deploy/kubernetes/sluice.yaml`);
  const user = /runAsUser: (\d+)\n\s+runAsGroup: (\d+)/.exec(manifest)?.slice(1);
  const dockerfile = await Deno.readTextFile(`${root}/Dockerfile`);
  assertEquals(/^USER (\d+):(\d+)$/m.exec(dockerfile)?.slice(1), user);
});
