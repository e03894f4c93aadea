import { isOurs } from './diff-links.ts';
import { type Owner, PROTOCOLS, TABLES } from './host-config.ts';
import { deleteLink, dumpLinks } from './links.ts';
import { deleteTable } from './delete-table.ts';
import { linkIndex, removeRoutes } from './set-routes.ts';
import { dumpRoutes } from './routes.ts';
import { deleteRule, describeRule, dumpRules } from './rules.ts';
import type { Host } from './set-links.ts';

/**
 * Removes all that bears the marks of this owner, through netlink alone, so that it takes no program and no memory. The
 * tunnels go first and the fallback routes last: what is still sent goes nowhere.
 */
export async function cleanUpHost(host: Host, owner: Owner): Promise<void> {
  const { kernel, work } = host;
  const step = async (what: string, run: () => Promise<void>): Promise<void> => {
    await work.attempt(what, async () => {
      await run();
      return 0;
    });
  };
  await step('links', async () => {
    for (const link of (await dumpLinks(kernel)).filter((link) => isOurs(owner, link))) {
      await work.remove(`link ${link.name}`, async () => deleteLink(kernel, link.index));
    }
  });
  await step('rules', async () => {
    for (const rule of (await dumpRules(kernel)).filter(({ protocol }) => protocol === PROTOCOLS[owner])) {
      await work.remove(describeRule(rule), async () => deleteRule(kernel, rule));
    }
  });
  await step('routes', async () => {
    const links = linkIndex(await dumpLinks(kernel));
    const routes = await dumpRoutes(kernel, links);
    await removeRoutes(
      host,
      routes.filter(({ protocol }) => protocol === PROTOCOLS[owner]),
      links,
    );
  });
  await work.remove(`nftables table ${TABLES[owner]}`, async () => deleteTable(TABLES[owner]));
}
