"""Pages in headless Chromium, and what everybody must be able to do with them."""

import os
import shutil
from pathlib import Path

import pytest

from .waiting import wait_for

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    OBSTACLE = '' if shutil.which('chromium') and shutil.which('chromedriver') else \
        'chromium and chromium-driver are not installed (scripts/test --full does)'
except ImportError:
    Keys = None
    OBSTACLE = 'python3-selenium is not installed (scripts/test --full installs it)'

needs_browser = pytest.mark.browser

# Returns a list of what is wrong with a page for people who use a keyboard, a screen reader, or need contrast.
CHECK = r'''
const wrong = [];
const say = (what, node) => wrong.push(`${what}: ${node.outerHTML.slice(0, 120)}`);
const shown = (node) => node.getClientRects().length > 0 && getComputedStyle(node).visibility !== 'hidden';

const nameOf = (node) => (node.getAttribute('aria-label') || (node.labels && [...node.labels].map((l) => l.textContent).join(' '))
  || (node.getAttribute('aria-labelledby') || '').split(' ').map((id) => document.getElementById(id)?.textContent || '').join(' ')
  || node.textContent).trim();
document.querySelectorAll('button, input, select, a, canvas, [role]').forEach((node) => {
  if (shown(node) && nameOf(node) === '') say('has no name', node);
});
document.querySelectorAll('canvas').forEach((node) => { if (node.getAttribute('role') !== 'img') say('has no role', node); });

document.querySelectorAll('canvas').forEach((node) => {
  if (Math.abs((node.clientWidth / node.clientHeight) * (node.height / node.width) - 1) > 0.02) say('is drawn too narrow or too wide', node);
});
if (!document.documentElement.lang) wrong.push('the page has no language');
if (!document.title) wrong.push('the page has no title');
if (document.querySelectorAll('main').length !== 1) wrong.push('the page has no main part');
if (document.querySelectorAll('h1').length !== 1) wrong.push('the page has not one main heading');
let level = 0;
document.querySelectorAll('h1, h2, h3, h4').forEach((node) => {
  const own = Number(node.tagName[1]);
  if (own > level + 1) say('skips a level of headings', node);
  level = own;
});
const ids = [...document.querySelectorAll('[id]')].map((node) => node.id);
ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => wrong.push(`two elements have the id ${id}`));

const parse = (text) => (text.match(/[\d.]+/g) || []).map(Number);
const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (node) => {
  for (let at = node; at; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !shown(node) || ['SCRIPT', 'STYLE', 'OPTION'].includes(node.tagName)) continue;
  const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5 && !node.closest('[disabled]')) say(`has a contrast of ${ratio.toFixed(2)}`, node);
}
document.querySelectorAll('*').forEach((node) => {
  const style = getComputedStyle(node);
  if (['sticky', 'fixed'].includes(style.position) && node.clientHeight > innerHeight / 3) say('stays in view, and takes much of it', node);
  if (shown(node) && ['auto', 'scroll'].includes(style.overflowY) && node.scrollHeight > node.clientHeight + 1 && node.tabIndex < 0
    && node.tagName !== 'HTML' && node.tagName !== 'BODY') say('scrolls, and no key reaches it', node);
});
return wrong;
'''


# Names axe.min.js of axe-core, whose rules pages are then checked by, too. Debian has no package of it.
AXE = os.environ.get('TORUS_AXE')
RUN_AXE = '''
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ['violations']}).then((result) => done(result.violations.flatMap(
  (rule) => rule.nodes.map((node) => `${rule.impact}, ${rule.id}: ${rule.help}: ${node.html.slice(0, 120)}`))));
'''


class Browser:
    """Chromium without a screen. Outside of this machine there is nothing for it. `with Browser() as page` ends it."""

    def __init__(self):
        options = Options()
        for argument in ('--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars',
                         '--disable-dev-shm-usage', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'):
            options.add_argument(argument)
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
        self.driver = webdriver.Chrome(service=Service(shutil.which('chromedriver')), options=options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def open(self, page, width=1280, dark=False, height=900):
        """Opens a file, or an address, in a window of this size."""
        self.driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {
            'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': width < 500})
        self.driver.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': [
            {'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}]})
        self.driver.get(str(page) if '://' in str(page) else f'file://{page}')

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def find(self, id):
        return self.driver.find_element(By.ID, id)

    def text(self, id):
        """What is shown of it."""
        return self.find(id).text

    def whole_text(self, id):
        """Its text, whether it is shown or not."""
        return self.run('return document.getElementById(arguments[0]).textContent', id)

    def note_texts(self, id):
        """From now on the page notes each text of an element, which may change again before a test has read it."""
        self.run('const node = document.getElementById(arguments[0]); node.noted = [];'
                 'new MutationObserver(() => node.noted.push(node.textContent)).observe(node, {childList: true});', id)

    def noted_texts(self, id):
        return self.run('return document.getElementById(arguments[0]).noted', id)

    def wait_text(self, id, *parts):
        wait_for(lambda: all(part in self.whole_text(id) for part in parts), 60,
                 lambda: f'{parts} not in #{id}: {self.whole_text(id)!r}', pause=0.1)

    def click(self, id):
        self.run('arguments[0].scrollIntoView({block: "center"})', self.find(id))
        self.find(id).click()

    def choose(self, id, value):
        """Chooses an option, as a user does: the page hears of it."""
        self.run('const s = document.getElementById(arguments[0]); s.value = arguments[1];'
                 's.dispatchEvent(new Event("change", {bubbles: true}));', id, str(value))

    def slide(self, id, value):
        self.run('const s = document.getElementById(arguments[0]); s.value = arguments[1];'
                 's.dispatchEvent(new Event("input", {bubbles: true}));', id, value)

    def press(self, *keys):
        self.run('document.activeElement.blur()')
        ActionChains(self.driver).send_keys(*keys).perform()

    def click_at(self, canvas, x, y):
        """Clicks at a place of a canvas, in pixels from its upper left corner."""
        self.run('arguments[0].scrollIntoView({block: "center"});'
                 'const box = arguments[0].getBoundingClientRect();'
                 'arguments[0].dispatchEvent(new MouseEvent("click", {clientX: box.left + arguments[1],'
                 'clientY: box.top + arguments[2], bubbles: true}));', canvas, x, y)

    def point_at(self, id):
        """Moves the mouse to an element."""
        node = self.find(id)
        self.run('arguments[0].scrollIntoView({block: "center"})', node)
        ActionChains(self.driver).move_to_element(node).perform()

    def pixels(self, canvas):
        """A hash of what the canvas shows, and the number of its colours."""
        return self.run('const g = arguments[0].getContext("2d"), d = g.getImageData(0, 0, arguments[0].width,'
                        'arguments[0].height).data, seen = new Set(); let hash = 7;'
                        'for (let i = 0; i < d.length; i += 4) { const c = d[i] << 16 | d[i + 1] << 8 | d[i + 2];'
                        'seen.add(c); hash = (hash * 31 + c) % 4294967291; } return [hash, seen.size];', canvas)

    def check(self):
        """Nothing is wrong with the page for anybody, it is not wider than its window, and its scripts have no
        errors."""
        wrong = self.run(CHECK)
        if AXE:
            self.run(Path(AXE).read_text())
            wrong += self.driver.execute_async_script(RUN_AXE)
        assert not wrong, '\n'.join(wrong)
        wide, window = self.run('return [document.documentElement.scrollWidth, window.innerWidth]')
        assert wide <= window, f'the page is {wide} pixels wide, in a window of {window}'
        errors = [line for line in self.driver.get_log('browser') if line['level'] in ('SEVERE', 'WARNING')
                  and 'willReadFrequently' not in line['message']]  # pixels() does that
        assert not errors, errors

    def has_visible_focus(self):
        """Whether each control that the tab key reaches shows it."""
        count = self.run('return document.querySelectorAll("button, input, select, [tabindex=\'0\']").length')
        self.run('document.activeElement.blur()')
        for _ in range(count):
            ActionChains(self.driver).send_keys(Keys.TAB).perform()
            outline = self.run('const s = getComputedStyle(document.activeElement);'
                               'return document.activeElement === document.body || (s.outlineStyle !== "none"'
                               ' && parseFloat(s.outlineWidth) >= 2)')
            assert outline, self.run('return document.activeElement.outerHTML')
        return count

    def close(self):
        self.driver.quit()
