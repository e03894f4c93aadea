import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type axe from 'axe-core';
import type { Page } from 'playwright-core';

import { advertisements } from '../../src/api/advertisement.ts';
import { foreignClusters } from '../../src/api/foreign-cluster.ts';
import { namespaceOffloadings } from '../../src/api/namespace-offloading.ts';
import { peeringRequests } from '../../src/api/peering-request.ts';
import { secrets } from '../../src/api/resources.ts';
import { ignoring } from '../../src/lib/errors.ts';
import { eventually } from '../support/eventually.ts';
import {
  chromiumProblem,
  DashboardBed,
  startBrowser,
  visit,
  type Browser,
  type Visit,
} from './support/dashboard-bed.ts';
import { event, HOSTILE, idOf, setPeering } from './support/dashboard-scene.ts';

/** The page in a real Chromium, served by the component of the role `cluster`, on a real API server. */

const problem = chromiumProblem();
if (problem !== undefined) process.stderr.write(`  dashboard: skipped, ${problem}\n`);
const describeInBrowser = problem === undefined ? describe : describe.skip;

/** Written only when asked for, so that a test run leaves the tree as it was. */
const PICTURES = process.env['TRIBUTARY_SCREENSHOTS'] === '1';
const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const UP_MS = 120_000;
/** The page is told of changes, and asks for nothing anew: a deadline for busy machines. */
const LATEST_MS = 30_000;

/** What functions that run in the page use of it. The types of browsers are not those of this program. */
interface PageGlobals {
  document: {
    documentElement: { scrollWidth: number; clientWidth: number };
    activeElement: { textContent: string };
    querySelector(selector: string): { textContent: string } | null;
  };
  getComputedStyle(element: object): { outlineStyle: string };
  axe: typeof axe;
}

let bed: DashboardBed;
let browser: Browser;
let admin: Visit;

const card = (page: Page, city: string): ReturnType<Page['locator']> =>
  page.locator(`[data-cluster="${idOf(city)}"]`);

/** The pictures of README and docs/dashboard.md: light, dark, and on a phone. */
async function takePictures(page: Page): Promise<void> {
  if (!PICTURES) return;
  const directory = join(import.meta.dirname, '../../docs/images');
  mkdirSync(directory, { recursive: true });
  for (const [name, colorScheme, width] of [
    ['dashboard-phone', 'dark', 320],
    ['dashboard-dark', 'dark', 1280],
    ['dashboard', 'light', 1280],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 900 });
    await page.screenshot({ path: join(directory, `${name}.png`) });
  }
}

/** What is wrong by the rules of WCAG 2.2 AA and by good practice. */
async function wrongIn(page: Page): Promise<string[]> {
  // The policy of the page lets no other script in; a debugger's is none of the page's.
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(async () => (globalThis as unknown as PageGlobals).axe.run());
  return violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`,
  );
}

const overflow = async (page: Page): Promise<number> =>
  page.evaluate(() => {
    const { scrollWidth, clientWidth } = (globalThis as unknown as PageGlobals).document.documentElement;
    return scrollWidth - clientWidth;
  });

describeInBrowser('the dashboard', () => {
  beforeAll(async () => {
    [bed, browser] = await Promise.all([DashboardBed.up(), startBrowser()]);
    admin = await visit(browser, bed.url, await bed.tokenOf('admin'));
  }, UP_MS);
  afterAll(async () => {
    await browser?.close();
    await bed?.down();
  }, UP_MS);
  afterEach(() => expect(admin.complaints).toEqual([]));

  test('shows clusters, tunnels, namespaces, use, and refusals as text', async () => {
    const { page } = admin;
    await expectText(card(page, 'milan'), '4 pods there · uses us');
    await expectText(page.locator('#tunnels'), '0.6 ms');
    await expectText(page.locator('#tunnels'), 'NoAnswer no probe has come back');
    await expectText(page.locator('#namespaces'), 'milan 4');
    await expectText(page.locator('#clusters'), '6500m of 8');
    await expectText(page.locator('#news'), 'ExceededQuota');
    await takePictures(page);
    await event(bed.admin, ['Warning', 'Forbidden', HOSTILE]);
    await expectText(page.locator('#news'), HOSTILE);
    expect(await page.locator('img').count()).toBe(1);
  });

  test('the map changes as soon as a peering begins and ends', async () => {
    const { page } = admin;
    const took = async (phase: 'Established' | 'None', text: string): Promise<number> => {
      await setPeering(bed.admin, 'berlin', 'None', phase);
      const began = performance.now();
      await page.waitForFunction(
        ([selector, wanted]) => {
          const { document } = globalThis as unknown as PageGlobals;
          return document.querySelector(selector)?.textContent.includes(wanted) === true;
        },
        [`[data-cluster="${idOf('berlin')}"]`, text] as const,
        { polling: 'raf', timeout: LATEST_MS },
      );
      return performance.now() - began;
    };
    const begun = await took('Established', 'uses us');
    await expectText(page.locator('#changes'), 'berlin uses us: Established');
    const ended = await took('None', 'seen');
    process.stdout.write(`the map changed after ${begun.toFixed(0)} and ${ended.toFixed(0)} ms\n`);
  });

  test('who may list but not write is refused in the words of the API server, and nothing changes', async () => {
    const { page, complaints } = await visit(browser, bed.url, await bed.tokenOf('viewer'));
    await page.getByRole('button', { name: 'Approve oslo' }).click();
    await expectText(
      page.getByRole('alert'),
      'forbidden: User "system:serviceaccount:people:viewer" cannot patch',
    );
    expect((await bed.admin.get(peeringRequests, { name: idOf('oslo') })).spec.approval).toBeUndefined();
    // Chromium itself says so of each answer that is no success.
    expect(complaints).toEqual([expect.stringContaining('403')]);
    await page.close();
  });

  test('who may list nothing sees nothing, and a token of nobody does not come in', async () => {
    const { page } = await visit(browser, bed.url, await bed.tokenOf('stranger'));
    await expectText(page.locator('#map'), 'no right to list ForeignClusters');
    expect(await page.content()).not.toMatch(/milan|oslo|shop|exceeded quota/);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Token').fill('nobody');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expectText(
      page.getByRole('alert'),
      'the API server does not accept this token: it is not one of a ServiceAccount, or not all of it was copied. ' +
        'To get a new one: kubectl --namespace NAMESPACE create token ACCOUNT',
    );
    await page.close();
  });

  test('approves and denies by click and by keyboard', async () => {
    const page = await again();
    await page.getByRole('button', { name: 'Approve oslo' }).click();
    await expectText(page.getByRole('status'), 'PeeringRequest oslo');
    expect((await bed.admin.get(peeringRequests, { name: idOf('oslo') })).spec.approval).toBe('Approved');
    await page.getByRole('button', { name: 'Deny vienna' }).focus();
    await page.keyboard.press('Enter');
    await eventually('the offer is denied', async () => {
      return (await bed.admin.get(advertisements, { name: idOf('vienna') })).spec.approval === 'Denied';
    });
    await expectText(page.locator('#decisions'), 'Nobody asks for anything.');
  });

  test('offloads a namespace, takes it back, peers and unpeers', async () => {
    const page = await again();
    const ref = { namespace: 'weather', name: 'offloading' };
    await page.getByRole('button', { name: 'Offload weather' }).click();
    await page.getByLabel('in other clusters only').check();
    await event(bed.admin, ['Warning', 'BackOff', 'while a dialog is open']);
    await expectText(page.locator('#news'), 'while a dialog is open');
    expect(await page.getByLabel('in other clusters only').isChecked()).toBe(true);
    await page.getByRole('dialog').getByRole('button', { name: 'Offload' }).click();
    await page.getByRole('button', { name: 'Take back weather' }).click();
    expect((await bed.admin.get(namespaceOffloadings, ref)).spec.podStrategy).toBe('Remote');
    await page.getByRole('dialog').getByRole('button', { name: 'Take back' }).click();
    await eventually('it is taken back', async () => {
      return (await bed.admin.get(namespaceOffloadings, ref).catch(ignoring('NotFound'))) === undefined;
    });

    await page.getByRole('button', { name: 'Peer…' }).click();
    await page.getByLabel('Address of its peering endpoint').fill('192.0.2.7:30743');
    await page
      .getByRole('textbox', { name: 'Token', exact: true })
      .fill(`${idOf('berlin')}.door.${'s'.repeat(43)}`);
    await page.getByRole('dialog').getByRole('button', { name: 'Peer', exact: true }).click();
    await expectText(page.getByRole('status'), 'Peering with berlin begins.');
    const { spec } = await bed.admin.get(foreignClusters, { name: idOf('berlin') });
    expect(spec).toMatchObject({ endpoint: '192.0.2.7:30743', outgoing: 'Enabled' });
    const secret = await bed.admin.get(secrets, {
      namespace: 'tributary-system',
      name: spec?.joinTokenSecretRef?.name ?? '',
    });
    expect(secret.metadata.ownerReferences?.[0]?.name).toBe(idOf('berlin'));

    await page.getByRole('button', { name: 'Unpeer milan' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Unpeer' }).click();
    await eventually('not to peer is said', async () => {
      return (await bed.admin.get(foreignClusters, { name: idOf('milan') })).spec?.incoming === 'Disabled';
    });
  });

  test('has no fault by axe, light and dark, wide and narrow, and does not scroll sideways at 320 pixels', async () => {
    const page = await again();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      for (const [name, width] of [
        ['desktop', 1280],
        ['phone', 320],
      ] as const) {
        await page.setViewportSize({ width, height: 900 });
        await card(page, 'milan').waitFor();
        // Each takes seconds, and the colours are the same on both.
        if ((name === 'phone') === (colorScheme === 'dark')) expect(await wrongIn(page)).toEqual([]);
        expect(await overflow(page)).toBe(0);
      }
    }
    await page.getByRole('button', { name: 'Peer…' }).click();
    expect(await wrongIn(page)).toEqual([]);
    expect(await overflow(page)).toBe(0);
    await page.keyboard.press('Escape');
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  test('the keyboard alone reaches everything: dialogs keep the focus and give it back', async () => {
    const page = await again();
    const focused = async (): Promise<string> =>
      page.evaluate(() => (globalThis as unknown as PageGlobals).document.activeElement.textContent);
    const seen: string[] = [];
    for (let step = 0; step < 60 && !seen.includes('Peer…'); step++) {
      await page.keyboard.press('Tab');
      seen.push(await focused());
    }
    expect(seen[0]).toBe('Sign out');
    expect(seen).toContain('Peer…');
    expect(seen.some((text) => text.includes('paris'))).toBe(true);
    const ring = await page.evaluate(() => {
      const window = globalThis as unknown as PageGlobals;
      return window.getComputedStyle(window.document.activeElement).outlineStyle;
    });
    expect(ring).toBe('solid');
    await page.keyboard.press('Enter');
    await page.keyboard.type('192.0.2.9:7443');
    expect(await page.getByLabel('Address of its peering endpoint').inputValue()).toBe('192.0.2.9:7443');
    await page.keyboard.press('Escape');
    expect(await focused()).toBe('Peer…');
  });

  test('a token that is withdrawn, or signing out, ends the session; a code lets in once', async () => {
    const token = await bed.tokenOf('admin');
    const post = async (path: string, body: object): Promise<Response> =>
      fetch(`${bed.url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-tributary-page': '1' },
        body: JSON.stringify(body),
      });
    const { code } = (await (await post('/api/sign-in-codes', { token })).json()) as { code: string };
    await browser.context.clearCookies();
    const page = await browser.context.newPage();
    await page.goto(`${bed.url}/#code=${code}`);
    await page.getByRole('heading', { name: 'Clusters' }).waitFor();
    expect(page.url()).not.toContain(code);
    expect((await post('/api/sign-in', { code })).status).toBe(401);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
    expect(await page.evaluate(async () => (await fetch('/api/models')).status)).toBe(401);
    await page.close();
  });
});

/** A page of the administrator again: the cookie of the browser is that of the last who signed in. */
async function again(): Promise<Page> {
  const before = admin;
  admin = await visit(browser, bed.url, await bed.tokenOf('admin'));
  await before.page.close();
  return admin.page;
}

async function expectText(locator: ReturnType<Page['locator']>, text: string): Promise<void> {
  await locator
    .filter({ hasText: text })
    .first()
    .waitFor({ timeout: 15_000 })
    .catch(async (cause: unknown) => {
      throw new Error(
        `"${text}" is not shown; but: ${(await locator.allTextContents()).join(' | ').slice(0, 2000)}`,
        { cause },
      );
    });
}
