#include "proto/peer/codec.h"

#define SURVEY_QUERY(NUMBER, TEXT, BYTES, LIST)                                                    \
    NUMBER(initiator) NUMBER(id) NUMBER(kind) NUMBER(left)
PEER_CODEC(survey_query, SurveyQuery, SURVEY_QUERY)

#define SURVEY_ANSWER(NUMBER, TEXT, BYTES, LIST)                                                   \
    NUMBER(initiator)                                                                              \
    NUMBER(id) NUMBER(node) NUMBER(part) NUMBER(parts) BYTES(bytes) NUMBER(left)
PEER_CODEC(survey_answer, SurveyAnswer, SURVEY_ANSWER)
