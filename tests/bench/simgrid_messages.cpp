/* Runs messages of a schedule in SimGrid: flows over links, each after those that it needs. Built and run by
 * in_simgrid.py. A message takes a turn at its sender before its startup, and gives it back when it has arrived.
 *
 * Input: "turns N"; "channels N", then of each channel the seconds of a byte and its latency; "messages N", then of each message its
 * bytes, its startup in seconds, its turn or -1, the number of its channels and the channels, the number of its needs and the messages.
 * Output: the time when the last message has arrived.
 *
 * A host stands for each end of each message, so that every message has its own route. */
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

namespace sg4 = simgrid::s4u;

struct message {
    double bytes, startup;
    int turn;
    std::vector<int> path, needs;
    std::vector<int> followers;
    sg4::Host *from, *to;
};

int main(int argc, char **argv)
{
    sg4::Engine engine(&argc, argv);
    std::string word;
    int count = 0;

    std::vector<sg4::SemaphorePtr> turn;
    std::cin >> word >> count;
    for (int i = 0; i < count; i++)
        turn.push_back(sg4::Semaphore::create(1));
    std::cin >> word >> count;
    sg4::NetZone *zone = sg4::create_full_zone("network");
    std::vector<const sg4::Link *> link;
    for (int i = 0; i < count; i++) {
        double per_byte = 0, latency = 0;
        std::cin >> per_byte >> latency;
        link.push_back(zone->create_link("channel" + std::to_string(i), 1 / per_byte)
                           ->set_latency(latency)
                           ->seal());
    }

    std::cin >> word >> count;
    std::vector<message> all(count);
    for (int i = 0; i < count; i++) {
        message &m = all[i];
        size_t hops = 0, needs = 0;
        std::cin >> m.bytes >> m.startup >> m.turn >> hops;
        m.path.resize(hops);
        for (int &channel : m.path)
            std::cin >> channel;
        std::cin >> needs;
        m.needs.resize(needs);
        for (int &need : m.needs)
            std::cin >> need;
        m.from = zone->create_host("from" + std::to_string(i), 1e9)->seal();
        m.to = zone->create_host("to" + std::to_string(i), 1e9)->seal();
    }
    if (!std::cin)
        return 1;
    for (int i = 0; i < count; i++) {
        std::vector<sg4::LinkInRoute> route;
        for (int channel : all[i].path)
            route.emplace_back(link[channel]);
        zone->add_route(all[i].from->get_netpoint(), all[i].to->get_netpoint(), nullptr, nullptr, route,
                        false);
        for (int need : all[i].needs)
            all[need].followers.push_back(i);
    }
    zone->seal();

    std::vector<sg4::SemaphorePtr> arrived;
    for (int i = 0; i < count; i++)
        arrived.push_back(sg4::Semaphore::create(0));
    for (int i = 0; i < count; i++) {
        sg4::Actor::create("message" + std::to_string(i), all[i].from, [&all, &arrived, &turn, i]() {
            const message &m = all[i];
            for (size_t k = 0; k < m.needs.size(); k++)
                arrived[i]->acquire();
            if (m.turn >= 0)
                turn[m.turn]->acquire();
            if (m.startup > 0)
                sg4::this_actor::sleep_for(m.startup);
            sg4::Comm::sendto(m.from, m.to, static_cast<uint64_t>(m.bytes));
            if (m.turn >= 0)
                turn[m.turn]->release();
            for (int follower : m.followers)
                arrived[follower]->release();
        });
    }
    engine.run();
    std::printf("%.9f\n", sg4::Engine::get_clock());
    return 0;
}
